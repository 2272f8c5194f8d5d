"""Tag sequences: what may follow what, the best one, probabilities, agreement in a document.

``allowed``, (Y + 2, Y + 2) for Y tags, says which tags may follow which: entry (i, j) is True if j
may come right after i. Row Y is the start of a sequence, column Y + 1 its end; row Y + 1 and column
Y are ignored. ``transitions``, (Y, Y), are learned scores of tag j right after tag i; none: 0. All
is computed in float64.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from elmokit.metrics.task_scores import Span, TagScheme, read_spans, write_tags
from elmokit.shapes import Bool, Float
from elmokit.tasks.task import Answer

MAX_TAGS = 4096  # of a model: what may follow what is a matrix
_BEGIN, _END = ("begin", ""), ("end", "")
_MUST_GO_ON = {"iob2": (), "bioul": ("B", "I")}
"""Prefixes of a span that the next tag must continue."""
_CONTINUES = {"iob2": ("I",), "bioul": ("I", "L")}
"""Prefixes that continue the span before them, which begins with B or goes on with I."""


def allowed_transitions(tags: Sequence[str], scheme: TagScheme) -> Bool[np.ndarray, "S S"]:
    """Return which tags may follow which.

    ``tags`` are all tags of the scheme in the order of their ids. ``iob2`` (BIO): B-X begins a span
    of type X, I-X only follows B-X or I-X, O is outside. ``bioul`` (BILOU): spans of one word are
    U-X, longer ones B-X, any I-X, L-X, so B-X and I-X only precede I-X or L-X. Tags that nothing
    can complete (B-X without I-X and L-X) are kept; no path ends in them.
    """
    if len(tags) > MAX_TAGS:
        raise ValueError(f"`tags` holds {len(tags):,} tags; at most {MAX_TAGS:,} are possible.")
    # "B-C-ARG1" -> ("B", "C-ARG1"); start and end are places of their own at the end.
    places = [*(tag.partition("-")[::2] for tag in tags), _BEGIN, _END]
    return np.array(
        [[_may_follow(before, after, scheme) for after in places] for before in places], dtype=bool
    )


def _may_follow(before: tuple[str, str], after: tuple[str, str], scheme: TagScheme) -> bool:
    if before == _END or after == _BEGIN:
        return False
    if after[0] in _CONTINUES[scheme]:
        return before[0] in ("B", "I") and before[1] == after[1]
    return before[0] not in _MUST_GO_ON[scheme]


class Lattice:
    """The allowed tag sequences of a sentence: the best one, and the probabilities of their parts.

    Some sequence of every length must be allowed, such as one of O alone.
    Source: Lafferty et al. 2001.
    """

    def __init__(
        self,
        logits: Float[np.ndarray, "T Y"],
        transitions: Float[np.ndarray, "Y Y"] | None,
        allowed: Bool[np.ndarray, "S S"],
    ) -> None:
        scores = 0.0 if transitions is None else transitions.astype(np.float64)
        self._steps = logits.astype(np.float64)
        self._moves = np.where(allowed[:-2, :-2], scores, -np.inf)
        self._first = np.where(allowed[-2, :-2], 0.0, -np.inf)
        self._last = np.where(allowed[:-2, -1], 0.0, -np.inf)
        if not (np.isfinite(logits).all() and (self._moves < np.inf).all()):
            raise FloatingPointError(
                "`logits` and `transitions` must be finite, got NaN or infinity: the model has "
                "diverged, or its input holds such values."
            )

    def best(self) -> list[int]:
        """Return the sequence with the highest score; of equals, the tag with the lower id wins."""
        if not len(self._steps):
            return []
        into = np.ascontiguousarray(self._moves.T)  # (Y after, Y before)
        best, back = self._first + self._steps[0], []
        for step in self._steps[1:]:
            reached = into + best
            back.append(reached.argmax(axis=1))  # the best tag before each tag
            best = np.maximum.reduce(reached, axis=1) + step
        tags = [int((best + self._last).argmax())]
        for before in reversed(back):
            tags.append(int(before[tags[-1]]))
        return tags[::-1]

    @cached_property
    def _before(self) -> Float[np.ndarray, "T Y"]:
        """Log-sums of all beginnings that end in a tag."""
        sums, reached = np.zeros_like(self._steps), self._first
        for t, step in enumerate(self._steps):
            sums[t] = reached + step
            reached = np.logaddexp.reduce(sums[t][:, None] + self._moves, axis=0)
        return sums

    @cached_property
    def _after(self) -> Float[np.ndarray, "T Y"]:
        """Log-sums of all ends that follow a tag."""
        sums, following = np.zeros_like(self._steps), self._last
        for t in reversed(range(len(self._steps))):
            sums[t] = following
            following = np.logaddexp.reduce(self._moves + (self._steps[t] + following), axis=1)
        return sums

    def of_part(self, start: int, tags: Sequence[int]) -> float:
        """Return the probability of these tags at the words from ``start`` on."""
        last = start + len(tags) - 1
        score = self._before[start, tags[0]] + self._after[last, tags[-1]]
        for t, (tag, following) in enumerate(pairwise(tags), start + 1):
            score += self._moves[tag, following] + self._steps[t, following]
        return float(np.exp(score - np.logaddexp.reduce(self._before[-1] + self._after[-1])))


def span_probs(lattice: Lattice, tags: Sequence[str], ids: dict[str, int]) -> list[float]:
    """Return the probability of each span of `read_spans`: of its type and both boundaries."""
    probs = []
    for kind, start, end in read_spans(tags):
        own = [ids[tag] for tag in tags[start:end]]
        prob = lattice.of_part(start, own)
        continues = ids.get(f"I-{kind}")
        # A BIO span says nothing about its end: what goes on after it is another span.
        if tags[end - 1][0] in "BI" and end < len(tags) and continues is not None:
            prob -= lattice.of_part(start, [*own, continues])
        probs.append(min(1.0, max(0.0, prob)))
    return probs


class TagSearch:
    """Turns a network's scores of tags into tags and their probabilities.

    With a ``scheme``, tags are the best allowed sequence, and probabilities those of spans.
    """

    def __init__(self, labels: list[str], scheme: TagScheme | None = None) -> None:
        self._labels = labels
        self._ids = {label: number for number, label in enumerate(labels)}
        self._allowed = None if scheme is None else allowed_transitions(labels, scheme)

    def answer(
        self, logits: Float[np.ndarray, "T Y"], transitions: Float[np.ndarray, "Y Y"] | None = None
    ) -> Answer:
        """Return the tags of a sentence, and the probabilities of each tag or each span."""
        if (allowed := self._allowed) is None:
            ids = logits.argmax(axis=1).tolist()
            return [self._labels[tag] for tag in ids], lambda: _tag_probs(logits, ids)
        tags = [self._labels[tag] for tag in Lattice(logits, transitions, allowed).best()]
        # a lattice of its own: only the logits stay in memory
        return tags, lambda: span_probs(Lattice(logits, transitions, allowed), tags, self._ids)


def _tag_probs(logits: Float[np.ndarray, "T Y"], ids: list[int]) -> list[float]:
    scores = logits.astype(np.float64)
    log_probs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    return np.exp(log_probs[range(len(ids)), ids]).tolist()


LEAST = 2  # occurrences in a document from which on a name counts; 1 and 3 gain less


def agreeing(answers: Iterable[tuple[Any, Answer]]) -> Iterator[tuple[Any, Answer]]:
    """Make the answers of `TaskRun` agree within documents; an empty text ends one.

    Spans that the tagger did not find in this form have the probability None.
    """
    document: list[tuple[Any, Answer]] = []
    for example, answer in answers:
        document.append((example, answer))
        if not example.tokens:
            yield from _agreed(document)
            document = []
    yield from _agreed(document)


def _agreed(document: list[tuple[Any, Answer]]) -> Iterator[tuple[Any, Answer]]:
    spans_of = [read_spans(tags) for _, (tags, _) in document]
    types: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for (example, _), spans in zip(document, spans_of, strict=True):
        for kind, start, end in spans:
            types[example.tokens[start:end]][kind] += 1
    types = {name: counts for name, counts in types.items() if counts.total() >= LEAST}
    names = {name: counts.most_common(1)[0][0] for name, counts in types.items()}
    lengths = sorted({len(name) for name in names}, reverse=True)  # the longest name wins
    for (example, (_, probs)), spans in zip(document, spans_of, strict=True):
        words = example.tokens
        agreed = [(names.get(words[start:end], kind), start, end) for kind, start, end in spans]
        taken = {at for _, start, end in spans for at in range(start, end)}
        for start, end in ((at, at + n) for n in lengths for at in range(len(words) - n + 1)):
            name, places = words[start:end], range(start, end)
            if name in names and name[0][:1].isupper() and taken.isdisjoint(places):
                agreed.append((names[name], start, end))
                taken.update(places)
        tags = write_tags(agreed, len(words), scheme="bioul")
        yield example, (tags, partial(_agreed_probs, tags, spans, probs))


def _agreed_probs(
    tags: list[str], spans: list[Span], probs: Callable[[], list[float]]
) -> list[float | None]:
    prob_of = dict(zip(spans, probs(), strict=True))
    return [prob_of.get(span) for span in read_spans(tags)]
