"""One type for a name throughout a document, whose sentences a tagger reads one by one.

A name that a document has at least twice gets the type that most of its occurrences have (of equal
counts, that of the first), and where it begins with a capital letter it is also found where the
tagger missed it. Nothing is learned.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from elmokit.metrics.span_f1 import Span, read_spans, write_tags

LEAST = 2  # occurrences in a document from which on a name counts; 1 and 3 gain less


def consistent_tags(document: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[list[str]]:
    """Return the tags (BIOUL) of a document's sentences, pairs of words and tags."""
    sentences = [(words, read_spans(tags)) for words, tags in document]
    types: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for words, spans in sentences:
        for kind, start, end in spans:
            types[tuple(words[start:end])][kind] += 1
    names = {
        name: counts.most_common(1)[0][0]
        for name, counts in types.items()
        if counts.total() >= LEAST
    }
    return [
        write_tags(_agreeing(words, spans, names), len(words), scheme="bioul")
        for words, spans in sentences
    ]


def _agreeing(
    words: Sequence[str], spans: Sequence[Span], names: dict[tuple[str, ...], str]
) -> list[Span]:
    """Return the spans of a sentence with the types of ``names``, and those that were missed."""
    agreed = [(names.get(tuple(words[s:e]), kind), s, e) for kind, s, e in spans]
    taken = {at for _, start, end in spans for at in range(start, end)}
    for length in sorted({len(name) for name in names}, reverse=True):  # the longest name wins
        for start in range(len(words) - length + 1):
            name, places = tuple(words[start : start + length]), range(start, start + length)
            if name in names and name[0][:1].isupper() and taken.isdisjoint(places):
                agreed.append((names[name], start, start + length))
                taken.update(places)
    return agreed


def agreeing(answers: Iterable[tuple[Any, Any]], *, with_probs: bool) -> Iterator[tuple[Any, Any]]:
    """Make the answers of `TaskRun.predict` agree within documents; an empty text ends one.

    Spans that the tagger did not find in this form have the probability None.
    """
    document: list[tuple[Any, Any]] = []
    for example, answer in answers:
        document.append((example, answer))
        if not example.tokens:
            yield from _agreed(document, with_probs)
            document = []
    yield from _agreed(document, with_probs)


def _agreed(document: list[tuple[Any, Any]], with_probs: bool) -> Iterator[tuple[Any, Any]]:
    tags = [answer[0] if with_probs else answer for _, answer in document]
    words = [example.tokens for example, _ in document]
    new_tags = consistent_tags(list(zip(words, tags, strict=True)))
    for (example, answer), old, new in zip(document, tags, new_tags, strict=True):
        if with_probs:
            probs = dict(zip(read_spans(old), answer[1], strict=True))
            yield example, (new, [probs.get(span) for span in read_spans(new)])
        else:
            yield example, new
