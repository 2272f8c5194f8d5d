"""Texts whose characters are tagged, one per row, as in KLUE-NER."""

from collections.abc import Iterator
from dataclasses import dataclass

from elmokit.files.atomic import StrPath
from elmokit.files.location import shown
from elmokit.metrics.span_f1 import Span, read_spans, write_tags
from elmokit.tasks.formats.columns import Columns
from elmokit.tasks.formats.conll import TaggedSentence, read_columns
from elmokit.text.alignment import Offsets, align
from elmokit.text.given_sentences import Tokenize


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedCharacters(TaggedSentence):
    """A text in tokens of a tokenizer, with tags of tokens and of characters, both IOB2.

    Tokens are tagged where they hold a character of a span, so their spans may be longer.
    """

    offsets: Offsets
    """Of the tokens, in characters of the text."""
    character_tags: tuple[str, ...]


def read_characters(
    path: StrPath, tokenize: Tokenize, columns: Columns | None = None
) -> Iterator[TaggedCharacters]:
    """Yield the texts of a file with one character and its IOB2 tag per row, spaces included."""
    return (_tokenized(text, tokenize) for text in read_columns(path, columns=columns))


def _tokenized(characters: TaggedSentence, tokenize: Tokenize) -> TaggedCharacters:
    begin = characters.location
    assert begin is not None  # it was read from a file
    longest = max(characters.tokens, key=len)
    if len(longest) > 1:
        raise begin.error(
            f"{shown(longest)} is not one character. With units=characters the file must have one "
            "character and its tag per row, spaces included, as in KLUE-NER; only a model trained "
            "with units=words reads rows of words."
        )
    text = "".join(characters.tokens)
    tokens = tuple(tokenize(text))
    offsets = align(tokens, text)
    if offsets is None:
        raise begin.error(f"the tokenizer's words cannot be found in {shown(text)}.")
    spans = spans_of_tokens(read_spans(characters.tags), offsets)
    return TaggedCharacters(
        tokens=tokens, tags=tuple(write_tags(spans, len(tokens), scheme="iob2")), text=text,
        offsets=offsets, character_tags=characters.tags,
    )  # fmt: skip


def spans_of_tokens(spans: list[Span], offsets: Offsets) -> list[Span]:
    """Return the tokens that hold a character of each span; each token is in one span at most.

    The spans do not overlap. One all of whose tokens are in an earlier one is left out.
    """
    ordered = sorted(spans, key=lambda span: span[1:])
    span_at = {at: number for number, span in enumerate(ordered) for at in range(*span[1:])}
    holding: list[list[int]] = [[] for _ in ordered]  # the tokens of each span
    for token, (first, last) in enumerate(offsets):
        for number in {span_at[at] for at in range(first, last) if at in span_at}:
            holding[number].append(token)
    result: list[Span] = []
    for (kind, _, _), tokens in zip(ordered, holding, strict=True):
        after = result[-1][2] if result else 0
        if own := [token for token in tokens if token >= after]:
            result.append((kind, own[0], own[-1] + 1))
    return result


def spans_of_characters(spans: list[Span], offsets: Offsets) -> list[Span]:
    """Return the characters of each span of tokens.

    Of spans that share characters, the first one has them.
    """
    result: list[Span] = []
    for kind, start, end in spans:
        first, last = offsets[start][0], offsets[end - 1][1]
        first = max(first, result[-1][2] if result else 0)
        if first < last:
            result.append((kind, first, last))
    return result
