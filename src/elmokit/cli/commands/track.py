"""`elmokit track`: a run's figures in TensorBoard."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from elmokit.cli.output import emit_json
from elmokit.wording import counted


def track(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    tracker: Annotated[Literal["tensorboard"], typer.Argument()] = "tensorboard",
    *,
    follow: bool = False,
    json: bool = False,
) -> None:
    """Show the metrics and settings of a run in TensorBoard (RUN/tensorboard).

    The metrics are read from RUN/metrics.jsonl, so training never waits for a tracker.

    Args:
        run: Directory of pretrain, finetune or train.
        tracker: Others read the rows in Python: see the guide to pre-training.
        follow: Continue while the run trains, until Ctrl-C.
    """
    from elmokit.training import trackers

    count = trackers.track(run, follow=follow)
    if json:
        emit_json({"run": run, "tracker": tracker, "rows": count})
    else:
        typer.echo(f"{counted(count, 'row')} of {run} sent to {tracker}")
