"""`elmokit evaluate`: score a trained task model on labeled data."""

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.cli.threads import choose_threads
from elmokit.wording import counted


def evaluate(
    run: options.TaskRunArgument,
    data: Annotated[Path, typer.Argument(metavar="DATA")],
    *,
    columns: options.ColumnsOption = None,
    model: options.RunModelOption = None,
    device: str = "auto",
    layer_cache: options.LayerCacheOption = None,
    threads: options.ThreadsOption = None,
    json: bool = False,
) -> None:
    """Score a trained task model on labeled data, in total and by tag, type of span or label.

    Args:
        data: File with gold labels, in the task's format.
    """
    from elmokit.tasks.runs.run_dir import run_hash
    from elmokit.tasks.runs.task_run import TaskRun
    from elmokit.weights.locate import TASK_RUNS

    choose_threads(threads)
    in_columns = options.columns_of(columns)
    trained = TaskRun.load(run, model=model, device=device, cache_dir=layer_cache)
    run_sha256 = run_hash(TASK_RUNS.find(run)) if json else None
    score = trained.evaluate(data, columns=in_columns)
    if json:
        given = {"metric": score.metric, "value": score.value, **score.details}
        by_label = {"by_label": score.by_label} if score.by_label else {}
        metadata = {"run_sha256": run_sha256, **trained.result_metadata()}
        emit_json({**given, "examples": len(score.counts), **by_label, "metadata": metadata})
        return
    typer.echo(f"{score.metric:<12}{score.value:8.2f}   ({counted(len(score.counts), 'example')})")
    for name, value in score.details.items():
        typer.echo(f"{name:<12}{value:8.2f}")
    if score.by_label:
        width = max(12, 2 + max(map(len, score.by_label)))
        typer.echo(f"\n{'':<{width}}{'precision':>10}{'recall':>8}{'F1':>8}{'gold':>8}")
        for label, found in score.by_label.items():
            typer.echo(
                f"{label:<{width}}{found.precision:10.2f}{found.recall:8.2f}{found.f1:8.2f}"
                f"{found.gold:8,}"
            )
