"""`elmokit train`: a task model on the layers of a biLM."""

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import (
    DeviceOption,
    JsonOption,
    LayerCacheOption,
    ModelOption,
    PrecisionOption,
    SetOption,
    TaskArgument,
    ThreadsOption,
    use_threads,
)
from elmokit.cli.output import emit_json
from elmokit.cli.progress import progress_bar


def train(
    task: TaskArgument,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="RUN", help="New directory of the run.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory with one train… and one dev… file."),
    ] = None,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Training set, instead of that in --data.")
    ] = None,
    dev: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Dev set, instead of that in --data.")
    ] = None,
    model: ModelOption = None,
    embeddings: Annotated[
        str, typer.Option(help="elmo, static, layer0, random, top, average or none.")
    ] = "elmo",
    vectors: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Static word vectors (word2vec, GloVe, fastText)."),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Most passes over the data.", min=1)] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights, order and dropout.")] = None,
    set_: SetOption = None,
    precision: PrecisionOption = "fp32",
    device: DeviceOption = "auto",
    layer_cache: LayerCacheOption = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Train TASK; keep the model that is best on the dev set.

    The biLM is frozen, unless train.finetune_bilm=true. A frozen one's layers of the data are
    computed once and kept on disk.
    """
    from elmokit.config import from_dict
    from elmokit.errors import InputError
    from elmokit.tasks.registry import find_task
    from elmokit.tasks.runs.config import TaskRunConfig
    from elmokit.tasks.runs.run_dir import find_split
    from elmokit.tasks.runs.task_run import train_task

    use_threads(threads)
    suffixes = find_task(task).suffixes
    if data is None and (train is None or dev is None):
        raise InputError("Give --data DIR, or both --train FILE and --dev FILE.")
    train_path = train or find_split(data or Path(), "train", suffixes)
    dev_path = dev or find_split(data or Path(), "dev", suffixes)
    settings: dict[str, dict[str, object]] = {"inputs": {"embeddings": embeddings}, "train": {}}
    given = {"epochs": epochs, "seed": seed}
    settings["train"] = {name: value for name, value in given.items() if value is not None}
    config = from_dict(
        TaskRunConfig, {"task": task, **settings}, source="the options", overrides=set_ or []
    )
    with progress_bar("layers") as update:
        result = train_task(
            config,
            train_path,
            dev_path,
            output,
            model=model,
            precision=precision,
            vectors=vectors,
            device=device,
            cache_dir=layer_cache,
            on_layers=lambda done, total: update(done, total=total, description="layers"),
            on_epoch=lambda report: update(
                report.epoch,
                total=config.train.epochs,
                description="epochs",
                status=f"loss {report.loss:.4f}, dev {report.dev.metric} {report.dev.value:.2f}",
            ),
        )
    best = result.best
    if json:
        emit_json(
            {
                "run": result.run_dir, "metric": best.dev.metric, "dev": best.dev.value,
                **best.dev.details, "best_epoch": best.epoch, "epochs": result.num_epochs,
                "seconds": result.seconds,
            }
        )  # fmt: skip
        return
    typer.echo(
        f"dev {best.dev.metric} {best.dev.value:.2f} after epoch {best.epoch} of "
        f"{result.num_epochs}; the model is in {result.run_dir}"
    )
