"""`elmokit vocab`: write a target vocabulary from a corpus, or check one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.cli.progress import progress_bar
from elmokit.errors import InputError
from elmokit.files.atomic import check_target
from elmokit.files.location import counted
from elmokit.files.sources import COMPRESSIONS
from elmokit.text.normalization import DEFAULT_NORMALIZATION, Normalization
from elmokit.version import __version__

if TYPE_CHECKING:
    from elmokit.corpus.readers import ReadReport
    from elmokit.files.remote import AnyFile
    from elmokit.text.tokenizers.protocol import Tokenizer
    from elmokit.text.vocab_doctor import CorpusFit, VocabReport
    from elmokit.text.word_counter import BuiltVocab
    from elmokit.text.worker_processes import Workers

_SENTENCES_PER_UPDATE = 10_000
T = TypeVar("T")


def vocab(
    corpus: Annotated[
        list[str] | None,
        typer.Argument(metavar="CORPUS", help=f"{options.CORPUS_HELP}. Optional with --check."),
    ] = None,
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None,
    overwrite: bool = False,
    check: Path | None = None,
    max_size: Annotated[int | None, typer.Option(min=1)] = None,
    min_count: Annotated[int | None, typer.Option(min=1)] = None,
    max_characters: Annotated[int | None, typer.Option(min=3)] = None,
    tokenizer: Annotated[str, typer.Option(help=f"One of {options.TOKENIZERS}.")] = "simple",
    normalization: Normalization = DEFAULT_NORMALIZATION,
    text_field: options.TextFieldOption = None,
    workers: options.WorkersOption = 1,
    json: bool = False,
) -> None:
    """Count words and write the target vocabulary, or check an existing one.

    Args:
        output: Vocabulary to write.
        check: Check this vocabulary, against CORPUS if given.
        max_size: Keep at most this many words, plus three specials.
        min_count: Minimum occurrences of a word; default: 1.
        max_characters: With --check: the model's characters per word; default: 50.
        normalization: Text normalization, as in the model: plain-1, NFC or none.
    """
    if (output is None) == (check is None):
        raise InputError(
            "vocab needs exactly one of -o FILE (count CORPUS, write the vocabulary) and --check "
            "FILE (check that vocabulary)."
        )
    if check is not None and (overwrite or max_size is not None or min_count is not None):
        raise InputError(
            "--max-size, --min-count and --overwrite are for writing a vocabulary, not --check."
        )
    if output is not None and output.suffix.lower() in COMPRESSIONS:
        raise InputError(
            f"{output}: the vocabulary is written as plain text. Leave the suffix out."
        )
    if check is None and max_characters is not None:
        raise InputError("--max-characters is for --check: a vocabulary has words of any length.")
    if check is None and not corpus:
        raise InputError("vocab needs a CORPUS to count: one or more files or folders of text.")
    from elmokit.corpus.readers import ReadReport, read_text_lines
    from elmokit.files.sources import find_files
    from elmokit.text.char_vocab import DEFAULT_MAX_CHARACTERS
    from elmokit.text.tokenizers.registry import build_tokenizer
    from elmokit.text.worker_processes import Workers

    files, read = find_files(corpus) if corpus else [], ReadReport()
    text = _Text(
        files=files,
        lines=(line.text for line in read_text_lines(files, read, text_field=text_field)),
        read=read,
        tokenizer=build_tokenizer(tokenizer),
        normalization=normalization,
        workers=Workers(workers),
    )
    if check is not None:
        _check(check, text, max_characters=max_characters or DEFAULT_MAX_CHARACTERS, json=json)
    else:
        target = Path(output or "")
        _count(
            target, text, overwrite=overwrite, max_size=max_size, min_count=min_count or 1,
            json=json,
        )  # fmt: skip


@dataclass(frozen=True)
class _Text:
    """A corpus, none or more files, and how it is split into words."""

    files: "list[AnyFile]"
    lines: Iterator[str]
    read: "ReadReport"
    """Filled while the lines are read."""
    tokenizer: "Tokenizer"
    normalization: Normalization
    workers: "Workers"


def _check(vocab_path: Path, text: _Text, *, max_characters: int, json: bool) -> None:
    """Check a vocabulary, against a corpus if there is one; exit with 2 if it is unusable."""
    from elmokit.text.char_vocab import CharVocab, CharVocabConfig
    from elmokit.text.sentences import tokenize_lines
    from elmokit.text.special_words import MAX_MARKED_SHARE
    from elmokit.text.vocab_doctor import check_vocab

    sentences = tokenize_lines(
        text.lines, text.tokenizer, text.normalization, text.read, workers=text.workers
    )
    sentences = _reported(sentences, text.read, _SENTENCES_PER_UPDATE)
    config = CharVocabConfig(max_characters=max_characters, normalization=text.normalization)
    report = check_vocab(
        vocab_path, sentences if text.files else None, char_vocab=CharVocab(config)
    )
    if text.read.marked_lines > MAX_MARKED_SHARE * text.read.lines:
        told = f"{counted(text.read.marked_lines, 'line')} of the corpus hold special words"
        report = replace(report, warnings=(*report.warnings, told))
    if json:
        emit_json(report)
    else:
        _print(report)
    if report.errors:
        raise typer.Exit(2)


def _count(
    target: Path,
    text: _Text,
    *,
    overwrite: bool,
    max_size: int | None,
    min_count: int,
    json: bool,
) -> None:
    """Count the words of a corpus and write its vocabulary."""
    from elmokit.files.remote import as_file, local_output
    from elmokit.text.sentences import tokenize_lines
    from elmokit.text.tokenizers.registry import tokenizer_metadata
    from elmokit.text.word_counter import build_vocab

    with local_output(target, inputs=text.files, overwrite=overwrite) as path:
        check_target(path, inputs=text.files, overwrite=overwrite)
        sentences = tokenize_lines(
            text.lines, text.tokenizer, text.normalization, text.read, workers=text.workers
        )
        sentences = _reported(sentences, text.read, _SENTENCES_PER_UPDATE)
        built = build_vocab(sentences, max_size=max_size, min_count=min_count)
        built.vocab.write(path)
    if json:
        emit_json({
            "path": str(as_file(target)), "size": len(built.vocab),
            "sentences": built.num_sentences,
            "words": built.num_words, "coverage": built.coverage, "skipped": text.read.skipped,
            "tokenizer": tokenizer_metadata(text.tokenizer),
            "normalization": text.normalization, "elmokit_version": __version__,
        })  # fmt: skip
        return
    typer.echo(f"vocabulary     {as_file(target)}")
    typer.echo(f"lines          {len(built.vocab):,} (three specials first)")
    typer.echo(f"corpus         {_sizes(built)}")
    typer.echo(f"coverage       {built.coverage:.2%} of the words")


def _reported(items: Iterable[T], report: "ReadReport", every: int) -> Iterator[T]:
    """Yield items; report the words that were read."""
    with progress_bar("counting") as update:
        for number, item in enumerate(items):
            if number % every == 0:
                update(report.words, status=f"{counted(report.words, 'word')}")
            yield item


def _print(report: "VocabReport") -> None:
    lines = ", ".join(
        f"{word} {f'line {line}' if line else 'missing'}"
        for word, line in report.special_lines.items()
    )
    typer.echo(f"vocabulary     {report.path}: {counted(report.num_words, 'word')}")
    typer.echo(f"specials       {lines}")
    typer.echo(f"bytes per word {_numbers(report.bytes_per_word)}")
    typer.echo(
        f"cut            {counted(report.num_truncated, 'word')} longer than {report.max_bytes} "
        f"bytes{_examples(report.truncated)}"
    )
    if report.corpus is not None:
        _print_fit(report.corpus)
    for message in report.errors:
        typer.echo(f"ERROR          {message}")
    for message in report.warnings:
        typer.echo(f"warning        {message}")
    if not report.errors and not report.warnings:
        typer.echo("no problem found")


def _sizes(corpus: "BuiltVocab | CorpusFit") -> str:
    return f"{counted(corpus.num_words, 'word')} in {counted(corpus.num_sentences, 'sentence')}"


def _print_fit(fit: "CorpusFit") -> None:
    order = (
        "sorted by descending count" if fit.is_sorted else "not sorted by the counts in this text"
    )
    typer.echo(f"corpus         {_sizes(fit)}")
    typer.echo(
        f"coverage       {fit.coverage:.2%}; {counted(fit.num_unseen, 'word')} not in the corpus"
    )
    typer.echo(f"order          {order}, rank correlation {fit.rank_correlation:.2f}")
    typer.echo(f"bytes per word {_numbers(fit.bytes_per_word)} (running words)")
    share = fit.num_truncated / max(fit.num_words, 1)
    typer.echo(
        f"cut            {share:.3%} of the words"
        f"{_examples([word for word, _ in fit.frequent_truncated])}"
    )
    typer.echo(f"unknown        {' '.join(f'{w} ({n})' for w, n in fit.frequent_unknown) or '-'}")


def _numbers(quantiles: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in quantiles.items()) or "-"


def _examples(words: "tuple[str, ...] | list[str]") -> str:
    return f": {' '.join(words[:3])}" if words else ""
