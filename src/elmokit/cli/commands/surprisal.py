"""`elmokit perplexity` and `surprisal`: how well a model predicts a text, and each word."""

import dataclasses
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, check_output, emit_json
from elmokit.errors import InputError, counted


def surprisal(
    model: options.ModelArgument,
    text: options.OptionalTextArgument = None,
    *,
    given: options.GivenTextOption = None,
    words: Literal["tokens", "typed"] = "tokens",
    punctuation: Literal["with-word", "drop"] = "with-word",
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None,
    top: Annotated[int, typer.Option(metavar="K", min=0)] = 0,
    batch_size: options.ScoringBatchOption = 1024,
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
        words: typed: a row per word between spaces, with the sum over its tokens and the entropies
            before its first token; no sentence ends.
        punctuation: Of typed words, whether surprisals of punctuation marks count with their word.
        output: Write .tsv, .jsonl or .parquet.
        top: Also show the K most likely words.
        json: Print a JSON object per row; with -o the perplexity as one object.
    """
    from elmokit.corpus.readers import ReadReport
    from elmokit.evaluation import surprisal_files as files
    from elmokit.evaluation.perplexity import warn_of_unknown
    from elmokit.evaluation.surprisal import surprisal_of_lines
    from elmokit.evaluation.text_scorer import open_scorer
    from elmokit.files.sources import find_files

    if output is not None:
        files.check_format(output)
    check_output(output, inputs=find_files(text) if text else (), overwrite=overwrite)
    if words == "typed" and top:
        raise InputError("--top is for tokens: a typed word may have several. Leave it out.")
    read = ReadReport()
    lines = options.text_lines(text, given, read, text_field=text_field)
    columns = files.TYPED_COLUMNS if words == "typed" else files.columns_of(top=top)
    scorer, splitter = open_scorer(
        model, tokenizer=tokenizer, device=device, batch_size=batch_size, state=state, top=top,
        unknown=unknown,
    )  # fmt: skip
    scored = surprisal_of_lines(scorer, splitter, lines, read=read)
    rows: Iterator[Any] = scored.typed(punctuation) if words == "typed" else iter(scored)
    first = list(itertools.islice(rows, 1))  # before anything is written
    if not first:
        scored.report()  # raises
    rows = itertools.chain(first, rows)
    metadata = scorer.metadata(tokenizer=splitter)
    if output is not None:
        files.write_surprisal(rows, output, metadata, columns)
    else:
        write = files.write_jsonl if json else files.write_tsv
        write(rows, sys.stdout, columns)
        sys.stdout.flush()
    report = scored.report()
    if output is not None and json:
        emit_json({
            **dataclasses.asdict(report), "skipped": read.skipped, "output": output,
            "metadata": metadata,
        })  # fmt: skip
    typer.echo(
        f"perplexity {report.forward:.2f} forward, {report.backward:.2f} backward, "
        f"{report.mean:.2f} mean; {counted(report.tokens, 'target')} of "
        f"{counted(report.sentences, 'sentence')}, "
        f"{report.oov_rate:.2%} of the words unknown",
        err=True,
    )
    warn_of_unknown(report)


def perplexity(
    model: options.ModelArgument,
    text: options.TextArgument,
    *,
    batch_size: options.ScoringBatchOption = 1024,
    tokenizer: str | None = None,
    state: str = "warm",
    unknown: str = "auto",
    precision: str = "auto",
    text_field: options.TextFieldOption = None,
    device: str = "auto",
    threads: options.ThreadsOption = None,
) -> Result:
    """Print the forward, backward and mean perplexity of a model on a text.

    Each word and sentence end of TEXT is scored once per direction, with the full softmax. A word
    outside the vocabulary counts as <UNK>; bits per byte have its spelling, too, if the model knows
    it, and can then be compared between vocabularies.

    Args:
        precision: fp32, bf16, or auto: bf16 where the processor is faster in it, which changes the
            figures by less than 0.1 %.
    """
    from elmokit.corpus.readers import ReadReport, read_sentences
    from elmokit.evaluation.perplexity import perplexity_of_words, warn_of_unknown
    from elmokit.evaluation.text_scorer import open_scorer

    read = ReadReport()
    scorer, splitter = open_scorer(
        model, tokenizer=tokenizer, device=device, batch_size=batch_size, state=state,
        precision=precision, unknown=unknown,
    )  # fmt: skip
    sentences = read_sentences(
        text, splitter, normalization=scorer.form, report=read, text_field=text_field
    )
    report = perplexity_of_words(scorer, sentences)
    warn_of_unknown(report)
    lines = [
        f"forward        {report.forward:10.2f}",
        f"backward       {report.backward:10.2f}",
        f"mean           {report.mean:10.2f}   (computed in {report.precision})",
    ]
    if report.oov_rate:
        lines.append(f"known words    {report.mean_known:10.2f}   (mean, without unknown words)")
    lines += [
        f"tokens         {report.tokens:10d}   (words and sentence ends, each scored once)",
        f"sentences      {report.sentences:10d}",
    ]
    if read.num_bad:
        lines.append(
            f"skipped lines  {read.num_bad:10d}   (of {read.lines:,}; they are not scored)"
        )
    reading = "unknown words spelled by the model"
    if not report.is_spelled:
        reading = (
            f"to {report.bits_per_byte_spelled:.3f}: unknown words scored as <UNK>, or spelled at "
            "8 bits a byte"
        )
    lines += [
        f"OOV rate       {report.oov_rate:10.2%}   (scored as <UNK>; vocabulary of "
        f"{report.vocabulary:,} words)",
        f"bits per byte  {report.bits_per_byte:10.3f}   ({reading})",
    ]
    metadata = scorer.metadata(tokenizer=splitter)
    figures = {**dataclasses.asdict(report), "skipped": read.skipped, "metadata": metadata}
    return Result(figures, lines)
