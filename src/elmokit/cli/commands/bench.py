"""`elmokit bench`: what embedding with a model costs on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import JsonOption, ModelArgument, OtherTokenizerOption, ThreadsOption
from elmokit.cli.output import emit_json, progress_bar, use_threads


def bench(
    model: ModelArgument,
    text: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[TEXT]", help="Your text; default: the demo's. Read in part."),
    ] = None,
    *,
    seconds: Annotated[
        float, typer.Option(help="Time for each of the six measurements.", min=0.1)
    ] = 5.0,
    tokenizer: OtherTokenizerOption = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Measure tokens/s at each precision, what limits it, and the hours that TEXT would take."""
    from elmokit.embed.bench import bench as measure

    use_threads(threads)
    with progress_bar("measuring", total=6) as update:
        report = measure(
            model, text or None, seconds=seconds, tokenizer=tokenizer, on_progress=update
        )
    if json:
        emit_json(report)
        return
    typer.echo(f"{'precision':10} {'sentences':>9} {'tokens/s':>10} {'spread':>7}  limited by")
    for speed in report.speeds:
        typer.echo(
            f"{speed.precision:10} {speed.sentences_at_once:9d} {speed.tokens_per_second:10,.0f} "
            f"{speed.spread:7.0%}  {speed.limit} ({speed.share_of_arithmetic:.0%} of the products' "
            f"ceiling, {speed.share_of_memory:.0%} of the memory's)"
        )
    typer.echo("Words that were seen before cost `embed` less than here.")
    if report.corpus is not None:
        hours = ", ".join(f"{name} {value:.2g} h" for name, value in report.corpus.hours.items())
        typer.echo(f"The text has about {report.corpus.tokens:,} tokens; all of it takes: {hours}.")
