"""`elmokit tokenize` and `trace`: a text and a word on their way into and through a model."""

from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.errors import as_input_error

if TYPE_CHECKING:
    from elmokit.inspection.trace import Token, WordTrace


_NUM_SHOWN = 10


def trace(
    model: options.ModelArgument,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE")],
    *,
    word: Annotated[int, typer.Option(metavar="N")] = 0,
    weights: Annotated[str | None, typer.Option(metavar="S0,S1,…")] = None,
    gamma: float = 1.0,
    json: bool = False,
) -> None:
    r"""Show how a model computes the vectors of a word.

    Prints every step from bytes through filters, highway gates and layers to the mixture. In
    windows of characters, ^ is word begin, $ word end, _ padding, and \x.. a byte of a longer
    character.

    Args:
        sentence: A raw sentence.
        word: Number of the token to trace, from 0.
        weights: Layer weights of the mixture; default: equal.
        gamma: Scale of the mixture.
        json: Print all numbers as one JSON object.
    """
    from elmokit.inspection.trace import trace as trace_word
    from elmokit.weights.stored_bilm import read_bilm

    loaded = read_bilm(model)
    with as_input_error():
        numbers = None if weights is None else [float(part) for part in weights.split(",")]
        traced = trace_word(loaded, sentence, word=word, weights=numbers, gamma=gamma)
    if json:
        emit_json({**traced.as_dict(), "metadata": loaded.metadata()})
        return
    _print(traced)


def _print(traced: "WordTrace") -> None:
    marked = (f"[{w}]" if i == traced.index else w for i, w in enumerate(traced.words))
    typer.echo(f"word       {traced.index}: {traced.word}   in: {' '.join(marked)}")
    if traced.char_ids:
        used = traced.char_ids[: len(traced.raw_bytes) + 2]
        typer.echo(f"bytes      {' '.join(map(str, traced.raw_bytes))}")
        typer.echo(f"char ids   {' '.join(map(str, used))}   (bytes + 1, between begin and end)")
        count = sum(len(one.values) for one in traced.filters)
        typer.echo(f"filters    {count}; the {min(_NUM_SHOWN, count)} highest:")
        every = (
            (value, one.width, number, window)
            for one in traced.filters
            for number, (value, window) in enumerate(
                zip(one.values.tolist(), one.windows, strict=True)
            )
        )
        for value, width, number, window in sorted(every, key=lambda row: -row[0])[:_NUM_SHOWN]:
            typer.echo(f"  {value:8.4f}   width {width}, filter {number:<4}  {window}")
        for one in traced.filters:
            values = one.values
            active = int((values > 0).sum())
            typer.echo(
                f"  width {one.width}: {len(values)} filters, {active} above 0, "
                f"mean {values.mean():.4f}"
            )
    for number, highway in enumerate(traced.highways, 1):
        gates = highway.gates
        typer.echo(
            f"highway {number}  gates: mean {gates.mean():.4f}, from {gates.min():.4f} to "
            f"{gates.max():.4f}"
        )
    typer.echo("layer      weight   norm forward   backward   first numbers")
    for number, (layer, weight) in enumerate(zip(traced.layers, traced.weights, strict=True)):
        ahead, back = layer.norms
        numbers = " ".join(f"{value:7.4f}" for value in layer.forward[:4])
        typer.echo(f"{number:<9} {weight:7.4f} {ahead:14.4f} {back:10.4f}   {numbers} …")
    numbers = " ".join(f"{value:7.4f}" for value in traced.mixture[:4])
    norm = float((traced.mixture**2).sum() ** 0.5)
    typer.echo(f"mixture    gamma {traced.gamma:g}, norm {norm:.4f}   {numbers} …")


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
    from elmokit.inspection.trace import count_tokens, tokenize_lines_of
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
