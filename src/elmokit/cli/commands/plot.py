"""`elmokit plot`: loss and held-out perplexity of a training run as a picture."""

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.files.location import counted


def plot(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of pretrain or finetune.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Write .png, .pdf or .svg."),
    ],
    *,
    overwrite: options.OverwriteOption = False,
    json: options.JsonOption = False,
) -> None:
    """Draw loss and held-out perplexity of a run by direction, also while it trains.

    As panel 8 of `elmokit explore`: with the line of an n-gram model, if ngram.json of
    benchmarks/bench_ngram.py is in RUN, and that of the base model of a fine-tuning run.
    """
    from elmokit.explorer.training_runs import plot_run
    from elmokit.files.atomic import check_target

    check_target(output, overwrite=overwrite)
    drawn = plot_run(run, output)
    if json:
        emit_json({"run": run, "output": output, "rows": len(drawn.rows)})
    else:
        state = "running" if drawn.is_running else "ended"
        typer.echo(f"{output}: {counted(len(drawn.rows), 'row')} of {run} ({state})")
