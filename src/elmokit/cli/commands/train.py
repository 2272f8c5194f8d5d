"""`elmokit train`: train a task model on the layers of a biLM."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli import options
from elmokit.cli.options import choose_threads
from elmokit.cli.output import TaskListeners, emit_json, progress_bar
from elmokit.errors import InputError
from elmokit.tasks.registry import TASKS, EmbeddingKind, find_task

if TYPE_CHECKING:
    from elmokit.tasks.runs.train_task import TaskResult

_TASKS = "; ".join(f"{name}: {entry.summary}" for name, entry in TASKS.items()) + "."
COLUMNS = ("columns.word", "columns.tag")


def train(
    task: Annotated[str, typer.Argument(metavar="TASK", help=_TASKS)],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="RUN")],
    data: Annotated[Path | None, typer.Option(metavar="DIR")] = None,
    train: Path | None = None,
    dev: Path | None = None,
    test: Path | None = None,
    columns: options.ColumnsOption = None,
    model: options.ModelOption = None,
    embeddings: EmbeddingKind | None = None,
    vectors: Path | None = None,
    epochs: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Annotated[
        int | None, options.seed_option("of weights, order and dropout; default: 0")
    ] = None,
    minutes: float | None = None,
    resume: bool = False,
    set_: options.SetOption = None,
    precision: str = "fp32",
    device: str = "auto",
    layer_cache: options.LayerCacheOption = None,
    threads: options.ThreadsOption = None,
    json: bool = False,
) -> None:
    """Train a task model and keep the epoch with the best dev score.

    The biLM is frozen unless train.finetune_bilm=true. The layers of a frozen biLM are computed
    once and cached on disk. --minutes limits training and scoring; after that, or after Ctrl-C,
    --resume continues.

    Args:
        output: Directory for the run.
        data: Directory with one train… and one dev… file.
        train: Training set, instead of the one in --data.
        dev: Dev set, instead of the one in --data.
        test: Test file, scored once, when the training is complete.
        embeddings: Word inputs: elmo, static, static_output, static_projected, layer0, random, top,
            average or none; default: elmo.
        precision: Of the biLM: fp32, bf16, int8, or auto: bf16 on a CPU that is faster in it.
        epochs: Maximum number of epochs.
    """
    from elmokit.config import from_dict
    from elmokit.tasks.formats.reading import find_split
    from elmokit.tasks.runs.run_dir import TaskRunConfig
    from elmokit.tasks.runs.train_task import train_task

    named: dict[str, object] = {
        "inputs.embeddings": embeddings, "train.epochs": epochs, "train.seed": seed,
    }  # fmt: skip
    if (numbers := options.columns_of(columns)) is not None:
        named |= dict(zip(COLUMNS, (numbers.word, numbers.tag), strict=True))
    config = from_dict(
        TaskRunConfig, {"task": task}, source="the options",
        overrides=[*options.as_settings(named), *(set_ or [])],
    )  # fmt: skip
    options.check_agreement(config, {
        "TASK": ("task", task), "--embeddings": ("inputs.embeddings", embeddings),
        "--epochs": ("train.epochs", epochs), "--seed": ("train.seed", seed),
        **{f"--{name.replace('.', ' ')}": (name, named[name]) for name in named.keys() & COLUMNS},
    })  # fmt: skip
    suffixes = find_task(task).suffixes
    if data is None and (train is None or dev is None):
        raise InputError("Give --data DIR, or both --train FILE and --dev FILE.")
    train_path, dev_path = (
        path or find_split(data or Path(), split, suffixes)
        for path, split in ((train, "train"), (dev, "dev"))
    )
    choose_threads(threads)
    with progress_bar("layers") as update:
        shown = TaskListeners(update)
        result = train_task(
            config, train_path, dev_path, output, model=model, precision=precision,
            vectors=vectors, test_path=test, device=device, cache_dir=layer_cache, resume=resume,
            minutes=minutes, save_on_signals=True, on_step=shown.on_step, on_epoch=shown.on_epoch,
            on_layers=lambda done, total: update(done, total=total, description="layers"),
        )  # fmt: skip
    _print(result, test, json=json)


def _print(result: "TaskResult", test: Path | None, *, json: bool) -> None:
    best, tested = result.best, result.test
    if json:
        test_score = {} if tested is None else {"test": {"value": tested.value, **tested.details}}
        emit_json({
            "run": result.run_dir, "metric": best.dev.metric, "dev": best.dev.value,
            **best.dev.details, "best_epoch": best.epoch, "epochs": result.num_epochs,
            "seconds": result.seconds, "complete": result.is_complete,
            **test_score,
        })  # fmt: skip
        return
    typer.echo(
        f"dev {best.dev.metric} {best.dev.value:.2f} after epoch {best.epoch} of "
        f"{result.num_epochs}; the model is in {result.run_dir}"
    )
    if tested is not None:
        typer.echo(f"test {tested.metric} {tested.value:.2f} on {test}")
    if not result.is_complete:
        typer.echo("stopped by --minutes; give more minutes and --resume to continue", err=True)
