"""`elmokit track`: send a run's figures to an experiment tracker."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from elmokit.cli.options import JsonOption
from elmokit.cli.output import emit_json


def track(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of pretrain or train.")],
    tracker: Annotated[
        Literal["tensorboard", "wandb", "mlflow", "trackio"],
        typer.Argument(help="tensorboard, wandb, mlflow or trackio; each needs its library."),
    ],
    *,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on while the run trains, until Ctrl-C.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Send the figures of a run to TensorBoard, Weights & Biases, MLflow or Trackio.

    They are read from RUN/metrics.jsonl, so training never waits for a tracker. The trackers' own
    environment variables apply (WANDB_MODE=offline, MLFLOW_TRACKING_URI).
    """
    from elmokit.training.trackers import track as send

    count = send(run, tracker, follow=follow)
    if json:
        emit_json({"run": run, "tracker": tracker, "rows": count})
    else:
        typer.echo(f"{count:,} rows of {run} sent to {tracker}")
