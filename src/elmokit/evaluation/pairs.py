"""Minimal pairs: how often a model finds the grammatical one of two sentences more probable.

A sentence's score is its surprisal in bits, words and sentence end, in each direction; ``summed``
adds both. Accuracies have intervals by bootstrap over the pairs. Source: Warstadt et al. 2020
(BLiMP), who compare whole sentences.
"""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from elmokit.errors import InputError, Location, counted, shown
from elmokit.evaluation.tables import table_records
from elmokit.evaluation.text_scorer import TextScorer
from elmokit.files.json_files import parse_json
from elmokit.files.lines import numbered_lines
from elmokit.files.sources import plain_suffix
from elmokit.shapes import Bool, Float
from elmokit.text.normalization import normalize
from elmokit.text.tokenizers.protocol import Tokenizer

log = logging.getLogger(__name__)

Scoring = Literal["forward", "backward", "summed"]
"""Whose surprisals decide which sentence of a pair is preferred."""
SCORINGS: tuple[Scoring, ...] = get_args(Scoring)
NUM_ROUNDS = 2000  # bootstrap samples of an interval
FORM = (
    'Pairs are JSON lines such as {"sentence_good": "The dog barks.", "sentence_bad": "The dog '
    'bark."}, or a table with these two columns in its header (.csv, or separated by tabs). --good '
    "and --bad name other columns."
)
TIE_BITS = 1e-4
"""Sentences whose scores differ by less are equally probable: below it is rounding."""
_BITS = 1 / math.log(2)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A sentence, the same with an error, and further columns of their file."""

    good: str
    bad: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PairScores:
    """Bits of N pairs: forward, backward, summed."""

    good: Float[np.ndarray, "3 N"]
    bad: Float[np.ndarray, "3 N"]
    has_unknown: Bool[np.ndarray, " N"]
    """Whether one of the two has a word outside the vocabulary."""

    def outcomes(self, scoring: Scoring) -> Float[np.ndarray, " N"]:
        """Return 1 where the good sentence is more probable, 0 where it is not, 0.5 for ties."""
        index = SCORINGS.index(scoring)
        difference = self.bad[index] - self.good[index]
        return np.where(np.abs(difference) < TIE_BITS, 0.5, difference > 0)


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """A share of pairs, from 0 to 1, with its 95 % interval; ties count as half."""

    accuracy: float
    low: float
    high: float
    ties: float


@dataclass(frozen=True, kw_only=True)
class PairFigures:
    pairs: int
    unknown: float
    """Share of the pairs with a word outside the vocabulary."""
    readings: dict[Scoring, Accuracy]
    without_unknown: dict[Scoring, float | None]
    """Accuracies on the other pairs; none if there are none."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The accuracy of a second model on the same pairs minus that of the first."""

    reading: Scoring
    difference: float
    low: float
    high: float
    p: float
    """Two-sided, exact: signs of the pairs on which the models differ (McNemar)."""


def read_pairs(path: Path, *, good: str = "sentence_good", bad: str = "sentence_bad") -> list[Pair]:
    """Read pairs from JSON lines, or a table with a header: commas in ``.csv``, else tabs.

    ``good`` and ``bad`` name the fields of the sentences; all others with text or numbers are
    labels.
    """
    pairs = []
    for location, record in _records(path):
        for name in (good, bad):
            if name not in record:
                columns = ", ".join(map(shown, record))
                raise location.error(f"no {shown(name)}, but {columns or 'nothing'}. {FORM}")
            if not isinstance(record[name], str) or not record[name].strip():
                raise location.error(f"`{name}` must be a sentence, got {shown(record[name])}.")
        if record[good] == record[bad]:
            raise location.error(f"both sentences of the pair are {shown(record[good])}.")
        labels = {
            name: str(value)
            for name, value in record.items()
            if name not in (good, bad) and isinstance(value, str | int | float)
        }
        pairs.append(Pair(good=record[good], bad=record[bad], labels=labels))
    if not pairs:
        raise InputError(f"{path} has no pairs. {FORM}")
    return pairs


def _records(path: Path) -> Iterator[tuple[Location, dict[str, Any]]]:
    if plain_suffix(path) not in (".jsonl", ".json", ".ndjson"):
        yield from table_records(path)
        return
    for number, line in numbered_lines(path):
        if line.strip():
            location = Location(path=path, line=number)
            yield location, parse_json(line, source=location, advice="A pair is a line.")


def score_pairs(scorer: TextScorer, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> PairScores:
    """Score both sentences of every pair; each distinct sentence once."""
    numbers: dict[tuple[str, ...], int] = {}
    places = np.empty((2, len(pairs)), dtype=np.int64)
    for column, pair in enumerate(pairs):
        for row, sentence in enumerate((pair.good, pair.bad)):
            words = tuple(tokenizer.tokenize(normalize(sentence, scorer.form)))
            if not words:
                raise InputError(f"The tokenizer finds no word in {shown(sentence)}.")
            places[row, column] = numbers.setdefault(words, len(numbers))
    if (same := np.flatnonzero(places[0] == places[1])).size:
        example = pairs[same[0]]
        log.warning(
            "both sentences of %s have the same tokens, which is a tie, such as %r and %r",
            counted(same.size, "pair"), example.good, example.bad,
        )  # fmt: skip
    bits = np.empty((3, len(numbers)))
    has_unknown = np.empty(len(numbers), dtype=np.bool_)
    done = 0
    for scored in scorer.score(map(list, numbers)):
        sentences = scored.tokens.sentences
        # a sentence of n words between its boundaries has n + 1 targets in each direction
        firsts = np.cumsum([0, *(len(sentence) - 1 for sentence in sentences[:-1])])
        span = slice(done, done + len(sentences))
        for row, direction in enumerate(("forward", "backward")):
            nats = scored.nats[direction] + scored.spelling
            bits[row, span] = np.add.reduceat(nats, firsts) * _BITS
        has_unknown[span] = [scored.is_unknown[words[1:-1]].any() for words in sentences]
        done += len(sentences)
    bits[2] = bits[0] + bits[1]
    good, bad = places
    return PairScores(bits[:, good], bits[:, bad], has_unknown[good] | has_unknown[bad])


def figures_of(scores: PairScores, rows: Bool[np.ndarray, " N"] | None = None) -> PairFigures:
    """Return the figures of some pairs, by default of all."""
    if rows is None:
        rows = np.ones(len(scores.has_unknown), dtype=np.bool_)
    known = rows & ~scores.has_unknown
    return PairFigures(
        pairs=int(rows.sum()),
        unknown=float(scores.has_unknown[rows].mean()),
        readings={way: share_of(scores.outcomes(way)[rows]) for way in SCORINGS},
        without_unknown={
            way: float(scores.outcomes(way)[known].mean()) if known.any() else None
            for way in SCORINGS
        },
    )


def figures_by(scores: PairScores, pairs: Sequence[Pair], label: str) -> dict[str, PairFigures]:
    """Return the figures of the pairs with each value of a label, in the order of the file."""
    values = [pair.labels.get(label, "") for pair in pairs]
    column = np.array(values, dtype=object)
    return {value: figures_of(scores, column == value) for value in dict.fromkeys(values)}


def share_of(outcomes: Float[np.ndarray, " N"]) -> Accuracy:
    """Return the mean of outcomes (1, 0, or 0.5 for a tie) with its interval."""
    low, high = _interval(outcomes)
    if low == high:
        # all samples of equal outcomes are the same: the exact binomial bound instead
        width = 1 - 0.025 ** (1 / len(outcomes))
        low, high = max(0.0, low - width), min(1.0, high + width)
    ties = float((outcomes == 0.5).mean())
    return Accuracy(accuracy=float(outcomes.mean()), low=low, high=high, ties=ties)


def _interval(outcomes: Float[np.ndarray, " N"]) -> tuple[float, float]:
    """Return the 95 % percentile interval of a mean of few distinct values."""
    # how often each value is drawn in a sample of N follows a multinomial distribution, so pairs
    # need not be drawn one by one
    values, counts = np.unique(outcomes, return_counts=True)
    generator = np.random.default_rng(0)
    draws = generator.multinomial(len(outcomes), counts / len(outcomes), size=NUM_ROUNDS)
    low, high = np.quantile(draws @ values / len(outcomes), [0.025, 0.975])
    return float(low), float(high)


def compare(first: PairScores, second: PairScores, scoring: Scoring) -> Comparison:
    """Compare two models on the same pairs."""
    difference = second.outcomes(scoring) - first.outcomes(scoring)
    low, high = _interval(difference)
    better, worse = int((difference > 0).sum()), int((difference < 0).sum())
    return Comparison(
        reading=scoring, difference=float(difference.mean()), low=low, high=high,
        p=_sign_test(better + worse, min(better, worse)),
    )  # fmt: skip


def _sign_test(total: int, fewer: int) -> float:
    """Return the chance of at least such an imbalance if both signs are equally likely."""
    # by logarithms: binomial coefficients of thousands of pairs are too large for floats
    logs = [
        math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1)
        for k in range(fewer + 1)
    ]
    tail = sum(math.exp(value - total * math.log(2)) for value in logs)
    return min(1.0, 2 * tail)
