"""`elmokit reading`: surprisal against reading times."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, check_output, write_table
from elmokit.errors import counted

if TYPE_CHECKING:
    from elmokit.evaluation.reading import ReadingReport


def reading(
    model: options.ModelArgument,
    table: Annotated[Path, typer.Argument(metavar="TABLE")],
    *,
    measure: Annotated[list[str], typer.Option(metavar="COLUMN")],
    word: str = "word",
    position: str = "position",
    first_position: Annotated[int, typer.Option(min=0, max=1)] = 1,
    sentence: str | None = None,
    item: str = "item",
    frequency: str | None = None,
    against: Annotated[list[str] | None, typer.Option(metavar="COLUMN")] = None,
    spill: Annotated[int, typer.Option(min=0, max=5)] = 1,
    punctuation: Literal["with-word", "drop"] = "with-word",
    final: bool = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None,
    state: Literal["warm", "reset"] = "warm",
    unknown: str = "unk",
    precision: str = "auto",
    overwrite: bool = False,
    threads: options.ThreadsOption = None,
) -> Result:
    """Print how much a model's surprisal says about reading times, word by word.

    TABLE (.csv, or separated by tabs, with a header) has a row per word. Surprisal is that of the
    whole word between spaces. The gain is that of a linear regression over its baseline (length,
    frequency and position, also of the words before), on items that were held out (on sentences, if
    there are fewer than 20 items): nats of log-likelihood a word, and points of R². Last words of
    sentences are left out. The letters of a word outside the vocabulary do not count unless
    --unknown spelled is given: a few words of 30 bits could decide the slope.

    Args:
        measure: Column with reading times or amplitudes; repeatable.
        word: Column with the word.
        position: Column with the place of the word in its sentence or item.
        first_position: Whether places count from 0 or 1.
        sentence: Column with the whole sentence; default: the words of an item are its text, in
            the order of their places, cut after full stops, question and exclamation marks.
        item: Column that says which words belong together, if there is no --sentence.
        frequency: Column with log frequencies; default: the logarithm of the rank, in the model's
            vocabulary, of the rarest word that the model reads in it.
        against: Column with another predictor for the same regression; repeatable.
        spill: Words before each whose predictors count, too.
        punctuation: Whether surprisals of punctuation marks count with their word.
        final: Keep the last words of sentences.
        output: Write the words with all predictors, separated by tabs, for R.
        state: LSTM state before each sentence: warm (as in training) or reset (zeros).
        precision: fp32, bf16 or auto, as for `elmokit perplexity`.
    """
    from elmokit.evaluation.reading import ReadingOptions, reading_gains

    check_output(output, inputs=[table], overwrite=overwrite)
    scoring = {"punctuation": punctuation, "precision": precision, "unknown": unknown}
    columns = ReadingOptions(
        measures=measure, word=word, position=position, first_position=first_position,
        sentence=sentence, item=item, frequency=frequency, against=against or (), spill=spill,
        final=final, state=state, scoring=scoring,
    )  # fmt: skip
    report = reading_gains(model, table, columns)
    if output is not None:
        write_table(output, report.header, report.rows)
    not_told = ("num_groups", "header", "rows")
    data = {name: value for name, value in vars(report).items() if name not in not_told}
    return Result(data, _lines(report))


def _lines(report: "ReadingReport") -> Iterator[str]:
    for name, parts in report.gains.items():
        yield (
            f"{name}: {counted(report.words, 'word')}, {report.left_out} left out, "
            f"held out by {report.held_out_by} ({report.num_groups})"
        )
        yield f"{'':<24}{'nats a word':>30}{'R² points':>12}{'slope':>10}"
        for key, part in parts.items():
            interval = f"{part.nats:+.4f} [{part.low:+.4f}, {part.high:+.4f}]"
            yield f"{key:<24}{interval:>30}{part.r2_points:>+12.2f}{part.slope:>+10.3f}"
