"""`elmokit tokenize`: the tokens that a model reads in a text."""

from typing import TYPE_CHECKING

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json

if TYPE_CHECKING:
    from elmokit.inspection.tokens import Token


def tokenize(
    model: options.ModelArgument,
    text: options.OptionalTextArgument = None,
    *,
    given: options.GivenTextOption = None,
    tokenizer: str | None = None,
    text_field: options.TextFieldOption = None,
    json: bool = False,
) -> None:
    """Print the tokens that a model reads in a text, with offsets and character ids.

    A line per token, separated by tabs: start and end in the raw line, the token, what was written
    there if that differs, its character ids (UTF-8 bytes + 1, between those of word begin and end),
    and marks: unknown (not in the vocabulary), cut (longer than max_characters), normalization or
    tokenizer (which of them changed it). Headings (#) count the sentences of a line, from 0. Counts
    follow on stderr.
    """
    from elmokit.corpus.readers import ReadReport
    from elmokit.inspection.tokens import count_tokens, tokenize_lines_of
    from elmokit.text.tokenizers.registry import build_tokenizer, tokenizer_for_model
    from elmokit.weights.stored_bilm import read_bilm

    read, counts = ReadReport(), count_tokens()
    lines = options.text_lines(text, given, read, text_field=text_field)
    loaded = read_bilm(model)
    splitter = build_tokenizer(tokenizer_for_model(loaded.tokenizer, tokenizer))
    shown = []
    for line in tokenize_lines_of(loaded, lines, splitter, read=read):
        counts.update(count_tokens(line))
        if json:
            shown.append(line)
            continue
        for number, sentence in enumerate(line.sentences):
            place = "" if line.file is None else f"{line.file}, "
            typer.echo(f"# {place}line {line.line}, sentence {number}")
            for token in sentence:
                typer.echo(_row(token))
    if json:
        emit_json({
            "texts": shown, "counts": counts, "skipped": read.skipped,
            "metadata": loaded.metadata(tokenizer=splitter),
        })  # fmt: skip
        return
    told = (
        f"{value:,} {name}" if value != 1 else f"1 {name.removesuffix('s')}"
        for name, value in counts.items()
    )
    typer.echo(", ".join(told), err=True)


def _row(token: "Token") -> str:
    start, end = ("", "") if token.start is None else (token.start, token.end)
    marks = (
        "unknown" if token.is_known is False else "",
        "cut" if token.is_cut else "",
        token.changed_by or "",
    )
    written = (token.raw or "").replace("\t", " ") if token.changed_by else ""
    ids = " ".join(map(str, token.char_ids))
    return f"{start}\t{end}\t{token.text}\t{written}\t{ids}\t{' '.join(filter(None, marks))}"
