"""`elmokit tokenize`, `trace` and `predict-word`: a text and a word as a model reads them."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, emit_json
from elmokit.errors import InputError, as_input_error

if TYPE_CHECKING:
    import numpy as np

    from elmokit.evaluation.word_prediction import PredictedWords
    from elmokit.inspection.trace import Token

_NUM_SHOWN = 10


def trace(
    model: options.ModelArgument,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE")],
    *,
    word: Annotated[int, typer.Option(metavar="N")] = 0,
    weights: Annotated[str | None, typer.Option(metavar="S0,S1,…")] = None,
    gamma: float = 1.0,
) -> Result:
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
    marked = (f"[{w}]" if i == traced.index else w for i, w in enumerate(traced.words))
    lines = [f"word       {traced.index}: {traced.word}   in: {' '.join(marked)}"]
    if traced.char_ids:
        used = traced.char_ids[: len(traced.raw_bytes) + 2]
        outputs = [
            (value, one.width, number, window)
            for one in traced.filters
            for number, (value, window) in enumerate(
                zip(one.values.tolist(), one.windows, strict=True)
            )
        ]
        highest = sorted(outputs, key=lambda row: -row[0])[:_NUM_SHOWN]
        lines += [
            f"bytes      {' '.join(map(str, traced.raw_bytes))}",
            f"char ids   {' '.join(map(str, used))}   (bytes + 1, between begin and end)",
            f"filters    {len(outputs)}; the {len(highest)} highest:",
        ]
        lines += [
            f"  {value:8.4f}   width {width}, filter {number:<4}  {window}"
            for value, width, number, window in highest
        ]
    lines += [
        f"highway {number}  gates: mean {gates.mean():.4f}, from {gates.min():.4f} to "
        f"{gates.max():.4f}"
        for number, gates in enumerate((highway.gates for highway in traced.highways), 1)
    ]
    lines.append("layer      weight   norm forward   backward   first numbers")
    for number, (layer, weight) in enumerate(zip(traced.layers, traced.weights, strict=True)):
        ahead, back = layer.norms
        first = _first_numbers(layer.forward)
        lines.append(f"{number:<9} {weight:7.4f} {ahead:14.4f} {back:10.4f}   {first}")
    norm = float((traced.mixture**2).sum() ** 0.5)
    first = _first_numbers(traced.mixture)
    lines.append(f"mixture    gamma {traced.gamma:g}, norm {norm:.4f}   {first}")
    return Result({**traced.as_dict(), "metadata": loaded.metadata()}, lines)


def _first_numbers(vector: "np.ndarray") -> str:
    return " ".join(f"{value:7.4f}" for value in vector[:4]) + " …"


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


def predict_word(
    model: options.ModelArgument,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE")],
    *,
    word: Annotated[int | None, typer.Option(metavar="N")] = None,
    insert: bool = False,
    top: Annotated[int, typer.Option(metavar="K", min=0)] = 10,
    state: str = "warm",
) -> Result:
    """Show which words a model expects after a sentence, before it, or inside it.

    The forward direction reads the words before the position, the backward direction those after
    it, and neither reads the word itself. "both" is proportional to p(word | before)
    p(word | after) / p(word), with p(word) estimated from its rank in the vocabulary. For the next
    word only "forward" is meaningful: the other two take the sentence to end after it.

    Args:
        sentence: A raw sentence.
        word: Number of the token to predict, from 0; default: the next.
        insert: Predict a word before token N; 0: before the sentence.
        top: Show the K likeliest words.
        state: LSTM state before the sentence: warm (as in training) or reset.
    """
    if insert and word is None:
        raise InputError("--insert needs --word N: the word before which to predict one.")
    from elmokit.evaluation.text_scorer import TextScorer
    from elmokit.evaluation.word_prediction import predict_of_words
    from elmokit.text.given_sentences import split_sentence
    from elmokit.weights.stored_bilm import read_bilm

    loaded = read_bilm(model)
    with as_input_error():
        scorer = TextScorer(loaded, state=state, precision="fp32", hashed=True)
        words = split_sentence(sentence, loaded.tokenize, where="`sentence`")
        expected = predict_of_words(scorer, words, index=word, insert=insert, top=top)
    before = expected.words[: expected.index]
    after = expected.words[expected.index + (not expected.insert) :]
    hidden = "" if expected.word is None else f"   hidden: {expected.word}"
    unknown = " (unknown: scored as <UNK>)" if expected.is_unknown else ""
    return Result({**asdict(expected), "metadata": scorer.metadata()}, [
        f"{' '.join((*before, '[?]', *after))}{hidden}{unknown}",
        f"forward  {_line(expected.forward)}",
        f"backward {_line(expected.backward)}",
        f"both     {_line(expected.both)}",
    ])  # fmt: skip


def _line(found: "PredictedWords") -> str:
    figures = f"entropy {found.entropy:.2f} bits"
    if found.rank is not None and found.probability is not None:
        figures += f", hidden word: rank {found.rank:,}, p {found.probability:.4f}"
    if not found.top:
        return figures
    return f"{figures}: {', '.join(f'{one.word} {one.probability:.3f}' for one in found.top)}"
