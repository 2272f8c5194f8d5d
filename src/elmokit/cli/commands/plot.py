"""`elmokit plot` and `track`: the curves of a training run, as a picture and in TensorBoard."""

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.output import Result
from elmokit.errors import counted


def plot(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None,
    overwrite: bool = False,
) -> Result:
    """Plot loss and held-out perplexity of a run by direction, even while it is training.

    The same plot as in the panel on training of `elmokit explore`, with a line for the base model
    of a fine-tuning run.

    Args:
        run: Directory of pretrain or finetune.
        output: Write .png, .pdf or .svg; default: plot.png in RUN.
    """
    from elmokit.files.atomic import check_target
    from elmokit.training.curves import plot_run

    target = output or run / "plot.png"
    check_target(target, overwrite=overwrite)
    drawn = plot_run(run, target)
    state = "running" if drawn.is_running else "ended"
    return Result(
        {"run": run, "output": target, "rows": len(drawn.rows)},
        [f"{target}: {counted(len(drawn.rows), 'row')} of {run} ({state})"],
    )


def track(run: Annotated[Path, typer.Argument(metavar="RUN")], *, follow: bool = False) -> Result:
    """Show the metrics and settings of a run in TensorBoard (RUN/tensorboard).

    The metrics are read from RUN/metrics.jsonl, so training never waits for a tracker.

    Args:
        run: Directory of pretrain, finetune or train.
        follow: Continue while the run trains, until Ctrl-C.
    """
    from elmokit.training.curves import track as write_events

    count = write_events(run, follow=follow)
    return Result({"run": run, "rows": count}, [f"{counted(count, 'row')} of {run} in TensorBoard"])
