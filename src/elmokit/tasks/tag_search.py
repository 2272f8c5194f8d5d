"""Tag sequences: what may follow what, the best one, probabilities, agreement in a document.

``allowed``, (Y + 2, Y + 2) for Y tags, says which tags may follow which: entry (i, j) is True if j
may come right after i. Row Y is the start of a sequence, column Y + 1 its end; row Y + 1 and column
Y are ignored. ``transitions``, (Y, Y), are learned scores of tag j right after tag i; none: 0. All
is computed in float64.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from elmokit.metrics.task_scores import TagScheme, read_spans, write_tags
from elmokit.shapes import Bool, Float, Int

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


def viterbi(
    logits: Float[np.ndarray, "B T Y"],
    lengths: Int[np.ndarray, " B"],
    *,
    transitions: Float[np.ndarray, "Y Y"] | None = None,
    allowed: Bool[np.ndarray, "S S"],
) -> tuple[Int[np.ndarray, "B T"], Float[np.ndarray, " B"]]:
    """Find the allowed tag sequence with the highest score for every row.

    Of equal scores, the tag with the lower id wins. Some sequence of every length must be allowed,
    such as one of O alone. Returns the tags, 0 beyond a row's length, and their scores.
    """
    num_rows, num_steps, num_tags = logits.shape
    tags = np.zeros((num_rows, num_steps), dtype=np.int64)
    keep = np.arange(num_steps) < lengths[:, None]  # (B, T)
    moves = _moves(transitions, allowed)
    if not (np.isfinite(logits[keep]).all() and (moves < np.inf).all()):
        raise FloatingPointError(
            "`logits` and `transitions` must be finite, got NaN or infinity: the model has "
            "diverged, or its input holds such values."
        )
    if num_steps == 0 or num_rows == 0:
        return tags, np.zeros(num_rows)
    steps = np.ascontiguousarray(logits.swapaxes(0, 1), dtype=np.float64)  # (T, B, Y)
    # the last two rows and columns of `allowed` are the states before and after the sentence
    best = np.where(allowed[-2, :-2], steps[0], -np.inf)
    into = np.ascontiguousarray(moves.T)  # (Y after, Y before)
    # the best tag before each tag; after a sentence every tag leads back to itself
    back = np.tile(np.arange(num_tags), (num_steps, num_rows, 1))
    for t in range(1, num_steps):
        rows = np.flatnonzero(keep[:, t])
        reached = best[rows, None] + into  # (rows, Y after, Y before)
        back[t, rows] = before = reached.argmax(axis=2)
        best[rows] = np.take_along_axis(reached, before[..., None], axis=2)[..., 0] + steps[t, rows]
    best = np.where(allowed[:-2, -1], best, -np.inf)
    rows, last = np.arange(num_rows), best.argmax(axis=1)
    scores = np.where(lengths > 0, best[rows, last], 0)
    for t in reversed(range(num_steps)):
        tags[:, t] = np.where(keep[:, t], last, 0)
        last = back[t, rows, last]
    return tags, scores


def _moves(
    transitions: Float[np.ndarray, "Y Y"] | None, allowed: Bool[np.ndarray, "S S"]
) -> Float[np.ndarray, "Y Y"]:
    """Return the scores of tags right after each other, -inf where that is not allowed."""
    scores = 0.0 if transitions is None else transitions.astype(np.float64)
    return np.where(allowed[:-2, :-2], scores, -np.inf)


class Marginals:
    """Probabilities of parts of the allowed tag sequences of a sentence (Lafferty et al. 2001)."""

    def __init__(
        self,
        logits: Float[np.ndarray, "T Y"],
        *,
        transitions: Float[np.ndarray, "Y Y"] | None = None,
        allowed: Bool[np.ndarray, "S S"],
    ) -> None:
        self._steps, self._moves = logits.astype(np.float64), _moves(transitions, allowed)
        self._before = np.zeros_like(self._steps)  # log-sum of all beginnings that end in a tag
        self._after = np.zeros_like(self._steps)  # of all ends that follow it
        reached = np.where(allowed[-2, :-2], 0.0, -np.inf)
        for t, step in enumerate(self._steps):
            self._before[t] = reached + step
            reached = np.logaddexp.reduce(self._before[t][:, None] + self._moves, axis=0)
        following = np.where(allowed[:-2, -1], 0.0, -np.inf)
        for t in reversed(range(len(self._steps))):
            self._after[t] = following
            following = np.logaddexp.reduce(self._moves + (self._steps[t] + following), axis=1)
        self._total = 0.0
        if len(self._steps):
            self._total = np.logaddexp.reduce(self._before[-1] + self._after[-1])

    def of_part(self, start: int, tags: Sequence[int]) -> float:
        """Return the probability of these tags at the words from ``start`` on."""
        last = start + len(tags) - 1
        score = self._before[start, tags[0]] + self._after[last, tags[-1]]
        for t, (tag, following) in enumerate(pairwise(tags), start + 1):
            score += self._moves[tag, following] + self._steps[t, following]
        return float(np.exp(score - self._total))


def span_probs(marginals: Marginals, tags: Sequence[str], ids: dict[str, int]) -> list[float]:
    """Return the probability of each span of `read_spans`: of its type and both boundaries."""
    probs = []
    for kind, start, end in read_spans(tags):
        own = [ids[tag] for tag in tags[start:end]]
        prob = marginals.of_part(start, own)
        continues = ids.get(f"I-{kind}")
        # A BIO span says nothing about its end: what goes on after it is another span.
        if tags[end - 1][0] in "BI" and end < len(tags) and continues is not None:
            prob -= marginals.of_part(start, [*own, continues])
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

    def best(
        self,
        logits: Float[np.ndarray, "B T Y"],
        lengths: Int[np.ndarray, " B"],
        transitions: Float[np.ndarray, "Y Y"] | None = None,
    ) -> list[list[str]]:
        if self._allowed is None:
            ids = logits.argmax(axis=2)
        else:
            ids, _ = viterbi(logits, lengths, transitions=transitions, allowed=self._allowed)
        rows = zip(ids.tolist(), lengths.tolist(), strict=True)
        return [[self._labels[tag] for tag in row[:length]] for row, length in rows]

    def best_with_probs(
        self,
        logits: Float[np.ndarray, "B T Y"],
        lengths: Int[np.ndarray, " B"],
        transitions: Float[np.ndarray, "Y Y"] | None = None,
    ) -> list[tuple[list[str], list[float]]]:
        """Return the tags of each sentence, and the probability of each tag or each span."""
        answers = []
        for tags, row in zip(self.best(logits, lengths, transitions), logits, strict=True):
            scores = row[: len(tags)]
            if self._allowed is not None:
                marginals = Marginals(scores, transitions=transitions, allowed=self._allowed)
                answers.append((tags, span_probs(marginals, tags, self._ids)))
            else:
                scores = scores.astype(np.float64)
                log_probs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
                own = log_probs[range(len(tags)), [self._ids[tag] for tag in tags]]
                answers.append((tags, np.exp(own).tolist()))
        return answers


LEAST = 2  # occurrences in a document from which on a name counts; 1 and 3 gain less


def agreeing(answers: Iterable[tuple[Any, Any]], *, with_probs: bool) -> Iterator[tuple[Any, Any]]:
    """Make the answers of `TaskRun.predict` agree within documents; an empty text ends one.

    Spans that the tagger did not find in this form have the probability None.
    """
    document: list[tuple[Any, Any]] = []
    for answer in answers:
        document.append(answer)
        if not answer[0].tokens:
            yield from _agreed(document, with_probs)
            document = []
    yield from _agreed(document, with_probs)


def _agreed(document: list[tuple[Any, Any]], with_probs: bool) -> Iterator[tuple[Any, Any]]:
    spans_of = [read_spans(answer[0] if with_probs else answer) for _, answer in document]
    types: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for (example, _), spans in zip(document, spans_of, strict=True):
        for kind, start, end in spans:
            types[example.tokens[start:end]][kind] += 1
    types = {name: counts for name, counts in types.items() if counts.total() >= LEAST}
    names = {name: counts.most_common(1)[0][0] for name, counts in types.items()}
    lengths = sorted({len(name) for name in names}, reverse=True)  # the longest name wins
    for (example, answer), spans in zip(document, spans_of, strict=True):
        words = example.tokens
        agreed = [(names.get(words[start:end], kind), start, end) for kind, start, end in spans]
        taken = {at for _, start, end in spans for at in range(start, end)}
        for start, end in ((at, at + n) for n in lengths for at in range(len(words) - n + 1)):
            name, places = words[start:end], range(start, end)
            if name in names and name[0][:1].isupper() and taken.isdisjoint(places):
                agreed.append((names[name], start, end))
                taken.update(places)
        tags = write_tags(agreed, len(words), scheme="bioul")
        if with_probs:
            probs = dict(zip(spans, answer[1], strict=True))
            yield example, (tags, [probs.get(span) for span in read_spans(tags)])
        else:
            yield example, tags
