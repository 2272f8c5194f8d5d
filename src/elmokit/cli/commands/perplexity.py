"""`elmokit perplexity`: how well a model predicts a text."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.options import (
    DeviceOption,
    JsonOption,
    ModelArgument,
    OtherTokenizerOption,
    ThreadsOption,
)
from elmokit.cli.output import emit_json, use_threads


def perplexity(
    model: ModelArgument,
    text: Annotated[
        list[Path], typer.Argument(metavar="TEXT", help="Text files: raw text, one or more.")
    ],
    *,
    batch_size: Annotated[
        int,
        typer.Option(help="Sentences computed together; the result does not depend on it.", min=1),
    ] = 64,
    tokenizer: OtherTokenizerOption = None,
    state: Annotated[
        str, typer.Option(help="What sentences start from: warm (as in training) or reset (zeros).")
    ] = "warm",
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Score each word and sentence end of TEXT once, in both directions, by the full softmax."""
    from elmokit.corpus.readers import ReadReport
    from elmokit.evaluation.perplexity import perplexity_of_files

    use_threads(threads)
    read = ReadReport()
    report = perplexity_of_files(
        model,
        text,
        batch_size=batch_size,
        tokenizer=tokenizer,
        device=device,
        state=state,
        read=read,
    )
    if json:
        emit_json({**dataclasses.asdict(report), "skipped": read.skipped})
        return
    typer.echo(f"forward        {report.forward:10.2f}")
    typer.echo(f"backward       {report.backward:10.2f}")
    typer.echo(f"mean           {report.mean:10.2f}")
    typer.echo(f"tokens         {report.tokens:10d}   (words and sentence ends, each scored once)")
    typer.echo(f"sentences      {report.sentences:10d}")
    if read.num_bad:
        typer.echo(f"skipped lines  {read.num_bad:10d}   (of {read.lines:,}; they are not scored)")
    typer.echo(
        f"OOV rate       {report.oov_rate:10.2%}   (scored as <UNK>; vocabulary of "
        f"{report.vocabulary:,} words)"
    )
    typer.echo(f"bits per byte  {report.bits_per_byte:10.3f}")
