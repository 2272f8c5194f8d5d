"""`elmokit track`: send a run's figures to an experiment tracker."""

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import JsonOption
from elmokit.cli.output import emit_json
from elmokit.files.location import counted
from elmokit.training.trackers import TRACKERS


def track(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Directory of pretrain, finetune or train.")
    ],
    tracker: Annotated[
        str, typer.Argument(help=f"One of {', '.join(TRACKERS)}; each needs its library.")
    ],
    *,
    follow: Annotated[
        bool, typer.Option("--follow", help="Continue while the run trains, until Ctrl-C.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Send the metrics and settings of a run to an experiment tracker.

    The metrics are read from RUN/metrics.jsonl, so training never waits for a tracker. The
    trackers' own environment variables apply (WANDB_MODE=offline, MLFLOW_TRACKING_URI).
    """
    from elmokit.training import trackers

    count = trackers.track(run, tracker, follow=follow)
    if json:
        emit_json({"run": run, "tracker": tracker, "rows": count})
    else:
        typer.echo(f"{counted(count, 'row')} of {run} sent to {tracker}")
