"""`elmokit bench`: how fast a model embeds on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import duration, emit_json
from elmokit.cli.progress import progress_bar
from elmokit.cli.threads import choose_threads


def bench(
    model: options.ModelArgument,
    text: Annotated[list[Path] | None, typer.Argument(metavar="TEXT")] = None,
    *,
    seconds: Annotated[float, typer.Option(min=0.1)] = 5.0,
    tokenizer: str | None = None,
    threads: options.ThreadsOption = None,
    json: bool = False,
) -> None:
    """Measure embedding speed on this CPU: tokens/s and the time for a text.

    Args:
        text: Text to time, read in part; default: demo text.
        seconds: Duration of each of the six measurements.
    """
    from elmokit.embed.bench import bench as measure

    choose_threads(threads)
    with progress_bar("measuring", total=6) as show:
        report = measure(
            model, text or None, seconds=seconds, tokenizer=tokenizer, on_progress=show
        )
    if json:
        emit_json(report)
        return
    typer.echo(f"{'precision':10} {'sentences':>9} {'tokens/s':>10}")
    for speed in report.speeds:
        typer.echo(
            f"{speed.precision:10} {speed.sentences_at_once:9d} {speed.tokens_per_second:10,.0f}"
        )
    typer.echo(f"CPU threads: {report.threads}; computed by {report.computed_by}")
    typer.echo("`embed` is faster than this on text whose words repeat.")
    if report.corpus is not None:
        times = ", ".join(
            f"{name} {duration(max(1, 3600 * hours))}"
            for name, hours in report.corpus.hours.items()
        )
        typer.echo(f"The text has about {report.corpus.tokens:,} tokens, which take about: {times}")
