"""`elmokit evaluate`: how well a trained task model does on a file with gold."""

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import (
    DeviceOption,
    JsonOption,
    LayerCacheOption,
    ModelOption,
    TaskRunArgument,
    ThreadsOption,
    use_threads,
)
from elmokit.cli.output import emit_json


def evaluate(
    run: TaskRunArgument,
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A file with gold, in the task's format.")
    ],
    *,
    model: ModelOption = None,
    device: DeviceOption = "auto",
    layer_cache: LayerCacheOption = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Score the model of RUN on DATA."""
    from elmokit.tasks.runs.task_run import TaskRun

    use_threads(threads)
    trained = TaskRun.load(run, model=model, device=device, cache_dir=layer_cache)
    score = trained.evaluate(data)
    if json:
        emit_json(
            {"metric": score.metric, "value": score.value, **score.details,
             "examples": len(score.counts)}
        )  # fmt: skip
        return
    typer.echo(f"{score.metric:<12}{score.value:8.2f}   ({len(score.counts):,} examples)")
    for name, value in score.details.items():
        typer.echo(f"{name:<12}{value:8.2f}")
