"""`elmokit surprisal`: how much each word of a text surprises a model."""

import dataclasses
import itertools
import sys
from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json, stdout_is_utf8
from elmokit.cli.threads import choose_threads
from elmokit.errors import InputError
from elmokit.wording import counted


def surprisal(
    model: options.ModelArgument,
    text: options.OptionalTextArgument = None,
    *,
    given: options.GivenTextOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None,
    top: Annotated[int, typer.Option(metavar="K", min=0)] = 0,
    batch_size: options.ScoringBatchOption = 64,
    tokenizer: str | None = None,
    state: str = "warm",
    unknown: str = "auto",
    text_field: options.TextFieldOption = None,
    overwrite: bool = False,
    device: str = "auto",
    threads: options.ThreadsOption = None,
    json: bool = False,
) -> None:
    """Print the surprisal of every word of a text, in bits, forward and backward.

    A row per word and per sentence end, which is </S>; its backward figures are those of <S>.
    Fields are separated by tabs and quoted as in CSV, with quotation marks doubled.
    Columns: file, line, sentence (in the whole input, from 0), index, word, start, end (characters
    of the line), is_unknown (outside the vocabulary), spelling (what its spelling adds to the
    surprisals of <UNK>), then forward, backward, mean (-log2 p), ranks and entropies. The
    perplexity, on stderr, is 2 raised to the mean of a column without spellings, as `elmokit
    perplexity` has it.

    Args:
        output: Write .tsv, .jsonl or .parquet.
        top: Also show the K most likely words.
        json: Print a JSON object per row; with -o the perplexity as one object.
    """
    from elmokit.corpus.readers import ReadReport
    from elmokit.evaluation import surprisal_files as files
    from elmokit.evaluation.perplexity import warn_of_unknown
    from elmokit.evaluation.surprisal import surprisal_of_lines
    from elmokit.evaluation.text_scorer import open_scorer
    from elmokit.files.atomic import check_target
    from elmokit.files.sources import find_files

    if output is not None:
        files.check_format(output)
        check_target(output, inputs=find_files(text) if text else (), overwrite=overwrite)
    elif overwrite:
        raise InputError("--overwrite is for -o: nothing is written without it.")
    choose_threads(threads)
    read = ReadReport()
    lines = options.text_lines(text, given, read, text_field=text_field)
    scorer, splitter = open_scorer(
        model, tokenizer=tokenizer, device=device, batch_size=batch_size, state=state, top=top,
        unknown=unknown,
    )  # fmt: skip
    rows = surprisal_of_lines(scorer, splitter, lines, read=read)
    first = list(itertools.islice(rows, 1))  # before anything is written
    if not first:
        rows.report()  # raises
    metadata = scorer.metadata(tokenizer=splitter)
    if output is not None:
        files.write_surprisal(itertools.chain(first, rows), output, metadata, top=top)
    else:
        all_rows, columns = itertools.chain(first, rows), files.columns_of(top=top)
        if json:
            files.write_jsonl(all_rows, sys.stdout, columns, ascii_only=not stdout_is_utf8())
        else:
            files.write_tsv(all_rows, sys.stdout, columns)
        sys.stdout.flush()
    report = rows.report()
    if output is not None and json:
        emit_json({
            **dataclasses.asdict(report), "skipped": read.skipped, "output": output,
            "metadata": metadata,
        })  # fmt: skip
    typer.echo(
        f"perplexity {report.forward:.2f} forward, {report.backward:.2f} backward, "
        f"{report.mean:.2f} mean; {counted(report.tokens, 'row')} of "
        f"{counted(report.sentences, 'sentence')}, "
        f"{report.oov_rate:.2%} of the words unknown",
        err=True,
    )
    warn_of_unknown(report)
