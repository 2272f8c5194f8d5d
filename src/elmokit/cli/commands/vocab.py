"""`elmokit vocab`: write a target vocabulary from a corpus, or check one."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, progress_bar
from elmokit.errors import counted, refuse
from elmokit.files.atomic import check_target
from elmokit.files.sources import COMPRESSIONS
from elmokit.text.normalization import DEFAULT_NORMALIZATION, Normalization
from elmokit.version import __version__

if TYPE_CHECKING:
    from elmokit.text.vocab_doctor import VocabReport


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
    model: Annotated[str | None, typer.Option("--model", "-m", metavar="MODEL")] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help=f"One of {options.TOKENIZERS}; default: simple.")
    ] = None,
    language: str | None = None,
    normalization: Normalization | None = None,
    text_field: options.TextFieldOption = None,
    workers: options.WorkersOption = 1,
) -> Result:
    """Count words and write the target vocabulary, or check an existing one.

    Args:
        output: Vocabulary to write.
        check: Check this vocabulary, against CORPUS if given.
        max_size: Keep at most this many words, plus three specials.
        min_count: Minimum occurrences of a word; default: 1.
        max_characters: With --check: characters per word; default: those of --model, or 50.
        model: Tokenize and normalize like this model: its directory, or en or ko.
        normalization: Text normalization, as in the model: plain-1 (default), NFC or none.
    """
    refuse({
        "vocab needs either -o FILE and a CORPUS to count, or --check FILE.": (
            (output is None) == (check is None) or not (check or corpus)
        ),
        "--max-size, --min-count and --overwrite are for -o, --max-characters for --check.": (
            max_characters is not None
            if check is None
            else overwrite or max_size is not None or min_count is not None
        ),
        "--model replaces --tokenizer, --language and --normalization: give one or the others.": (
            model is not None and (tokenizer or language or normalization) is not None
        ),
        f"{output}: the vocabulary is written as plain text. Leave the suffix out.": (
            output is not None and output.suffix.lower() in COMPRESSIONS
        ),
    })  # fmt: skip
    from elmokit.corpus.readers import ReadReport, read_text_lines
    from elmokit.files.sources import find_files
    from elmokit.text.char_vocab import DEFAULT_MAX_CHARACTERS, CharVocab, CharVocabConfig
    from elmokit.text.sentences import Workers, tokenize_lines
    from elmokit.text.tokenizers.registry import build_tokenizer, tokenizer_metadata
    from elmokit.text.vocab_doctor import check_vocab
    from elmokit.text.word_counter import build_vocab
    from elmokit.weights.locate import find_model
    from elmokit.weights.model_files import read_config

    files, read = find_files(corpus) if corpus else [], ReadReport()
    lines = (line.text for line in read_text_lines(files, read, text_field=text_field))
    limit = DEFAULT_MAX_CHARACTERS
    if model is None:
        name = options.tokenizer_of(tokenizer, language) or options.DEFAULT_TOKENIZER
        splitter, normalization = build_tokenizer(name), normalization or DEFAULT_NORMALIZATION
    else:
        stored = read_config(find_model(model))
        splitter, characters = build_tokenizer(stored.tokenizer), stored.bilm.char_vocab
        normalization, limit = characters.normalization, characters.max_characters
    processes = Workers(workers)
    tokenized = tokenize_lines(lines, splitter, normalization, read, workers=processes)

    def sentences() -> Iterator[list[str]]:
        with progress_bar("counting") as update:
            for number, sentence in enumerate(tokenized):
                if number % 10_000 == 0:
                    update(read.words, status=counted(read.words, "word"))
                yield sentence

    if check is not None:
        config = CharVocabConfig(
            max_characters=max_characters or limit, normalization=normalization
        )
        report = check_vocab(check, sentences() if files else None, char_vocab=CharVocab(config))
        return Result(report, _findings(report), exit_code=2 if report.errors else 0)
    assert output is not None
    check_target(output, inputs=files, overwrite=overwrite)
    built = build_vocab(sentences(), max_size=max_size, min_count=min_count or 1)
    built.vocab.write(output)
    figures = {
        "path": str(output), "size": len(built.vocab),
        "sentences": built.num_sentences,
        "words": built.num_words, "coverage": built.coverage, "skipped": read.skipped,
        "tokenizer": tokenizer_metadata(splitter),
        "normalization": normalization, "elmokit_version": __version__,
    }  # fmt: skip
    return Result(figures, [
        f"vocabulary     {output}",
        f"lines          {len(built.vocab):,} (three specials first)",
        f"corpus         {_sizes(built)}",
        f"coverage       {built.coverage:.2%} of the words",
    ])  # fmt: skip


def _findings(report: "VocabReport") -> Iterator[str]:
    specials = (
        f"{word} {f'line {line}' if line else 'missing'}"
        for word, line in report.special_lines.items()
    )
    yield f"vocabulary     {report.path}: {counted(report.num_words, 'word')}"
    yield f"specials       {', '.join(specials)}"
    longer = f"{counted(report.num_truncated, 'word')} longer than {report.max_bytes} bytes"
    examples = " ".join(report.truncated[:3])
    yield f"cut            {longer}{examples and f': {examples}'}"
    if (fit := report.corpus) is not None:
        yield f"corpus         {_sizes(fit)}"
        unseen = f"{counted(fit.num_unseen, 'word')} not in the corpus"
        yield f"coverage       {fit.coverage:.2%}; {unseen}"
        yield f"order          rank correlation with the counts {fit.rank_correlation:.2f}"
        yield f"cut            {fit.num_truncated / max(fit.num_words, 1):.3%} of the words"
        unknown = " ".join(f"{word} ({count})" for word, count in fit.frequent_unknown)
        yield f"unknown        {unknown or '-'}"
    for message in report.errors:
        yield f"ERROR          {message}"
    for message in report.warnings:
        yield f"warning        {message}"
    if not report.errors and not report.warnings:
        yield "no problem found"


def _sizes(corpus: Any) -> str:
    return f"{counted(corpus.num_words, 'word')} in {counted(corpus.num_sentences, 'sentence')}"
