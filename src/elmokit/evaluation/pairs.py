"""Minimal pairs: how often a model finds the grammatical one of two sentences more probable.

A sentence's score is its surprisal in bits, words and sentence end, in each direction; ``summed``
adds both. Accuracies have intervals by bootstrap over the pairs. Source: Warstadt et al. 2020
(BLiMP), who compare whole sentences.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from elmokit.errors import InputError
from elmokit.evaluation.text_scorer import TextScorer
from elmokit.files.lines import csv_rows, numbered_lines
from elmokit.files.sources import plain_suffix
from elmokit.shapes import Bool, Float
from elmokit.text.tokenizers.protocol import Tokenizer
from elmokit.wording import Location, shown

Reading = Literal["forward", "backward", "summed"]
READINGS: tuple[Reading, ...] = get_args(Reading)
NUM_ROUNDS = 2000
"""Bootstrap samples of an interval."""
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
    """A sentence, the same with an error, and what its file says about both."""

    good: str
    bad: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """Further columns of the file, such as the paradigm."""


@dataclass(frozen=True)
class PairScores:
    """Scores of N pairs."""

    good: Float[np.ndarray, "3 N"]
    """Bits of the good sentences: forward, backward, summed."""
    bad: Float[np.ndarray, "3 N"]
    has_unknown: Bool[np.ndarray, " N"]
    """Whether one of the two has a word outside the vocabulary."""

    def outcomes(self, reading: Reading) -> Float[np.ndarray, " N"]:
        """Return 1 where the good sentence is more probable, 0 where it is not, 0.5 for ties."""
        index = READINGS.index(reading)
        difference = self.bad[index] - self.good[index]
        return np.where(np.abs(difference) < TIE_BITS, 0.5, difference > 0)


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """A share of pairs, from 0 to 1, with its 95 % interval."""

    accuracy: float
    low: float
    high: float
    ties: float
    """Share of the pairs that are equally probable; each counts as half."""


@dataclass(frozen=True, kw_only=True)
class PairFigures:
    """What a model does on some pairs."""

    pairs: int
    unknown: float
    """Share of the pairs with a word outside the vocabulary."""
    readings: dict[Reading, Accuracy]
    without_unknown: dict[Reading, float | None]
    """Accuracies on the other pairs; none if there are none."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two models on the same pairs."""

    reading: Reading
    difference: float
    """Accuracy of the second minus that of the first."""
    low: float
    high: float
    p: float
    """Two-sided, exact: signs of the pairs on which the models differ (McNemar)."""


def read_pairs(path: Path, *, good: str = "sentence_good", bad: str = "sentence_bad") -> list[Pair]:
    """Read pairs from JSON lines, or a table with a header: commas in ``.csv``, else tabs.

    ``good`` and ``bad`` name the fields of the sentences; all others with text or numbers are
    labels.

    Raises:
        FormatError: for a line that is no record, lacks a sentence, or has twice the same.
        InputError: if there is no pair.
    """
    pairs = []
    for location, record in _records(path):
        sentences = [record.get(name) for name in (good, bad)]
        for name, sentence in zip((good, bad), sentences, strict=True):
            if name not in record:
                columns = ", ".join(map(shown, record))
                raise location.error(f"no {shown(name)}, but {columns or 'nothing'}. {FORM}")
            if not isinstance(sentence, str) or not sentence.strip():
                raise location.error(f"`{name}` must be a sentence, got {shown(sentence)}.")
        if sentences[0] == sentences[1]:
            raise location.error(f"both sentences of the pair are {shown(sentences[0])}.")
        labels = {
            name: str(value)
            for name, value in record.items()
            if name not in (good, bad) and isinstance(value, str | int | float)
        }
        pairs.append(Pair(good=str(sentences[0]), bad=str(sentences[1]), labels=labels))
    if not pairs:
        raise InputError(f"{path} has no pairs. {FORM}")
    return pairs


def _records(path: Path) -> Iterator[tuple[Location, dict[str, Any]]]:
    lines = numbered_lines(path)
    if plain_suffix(path) in (".jsonl", ".json", ".ndjson"):
        for number, line in lines:
            location = Location(path=path, line=number)
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise location.error(
                    f"invalid JSON: {error}. A pair is an object a line."
                ) from error
            if not isinstance(record, dict):
                raise location.error(f"expected a JSON object a line, got {shown(record)}.")
            yield location, record
        return
    rows: Iterable[tuple[int, list[str]]]
    if plain_suffix(path) == ".csv":
        rows = csv_rows(path, (line for _, line in lines))
    else:
        rows = ((number, line.split("\t")) for number, line in lines if line.strip())
    header: list[str] | None = None
    for number, row in rows:
        if header is None:
            header = row
        elif row:
            if len(row) != len(header):
                raise Location(path=path, line=number).error(
                    f"{len(row)} columns, but the header has {len(header)}."
                )
            yield Location(path=path, line=number), dict(zip(header, row, strict=True))


def score_pairs(scorer: TextScorer, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> PairScores:
    """Score both sentences of every pair; each distinct sentence once."""
    numbers: dict[tuple[str, ...], int] = {}
    places = np.empty((2, len(pairs)), dtype=np.int64)
    for column, pair in enumerate(pairs):
        for row, sentence in enumerate((pair.good, pair.bad)):
            words = tuple(tokenizer.tokenize(sentence))
            if not words:
                raise InputError(f"The tokenizer finds no word in {shown(sentence)}.")
            places[row, column] = numbers.setdefault(words, len(numbers))
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
        readings={reading: share_of(scores.outcomes(reading)[rows]) for reading in READINGS},
        without_unknown={
            reading: float(scores.outcomes(reading)[known].mean()) if known.any() else None
            for reading in READINGS
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
    accuracy = float(outcomes.mean())
    # all samples of equal outcomes are the same: the exact binomial bound instead
    width = 1 - 0.025 ** (1 / len(outcomes))
    if low == high:
        low, high = max(0.0, low - width), min(1.0, high + width)
    return Accuracy(accuracy=accuracy, low=low, high=high, ties=float((outcomes == 0.5).mean()))


def _interval(outcomes: Float[np.ndarray, " N"]) -> tuple[float, float]:
    """Return the 95 % percentile interval of a mean of few distinct values.

    How often each value is drawn in a sample of N follows a multinomial distribution, so pairs
    need not be drawn one by one.
    """
    values, counts = np.unique(outcomes, return_counts=True)
    generator = np.random.default_rng(0)
    draws = generator.multinomial(len(outcomes), counts / len(outcomes), size=NUM_ROUNDS)
    low, high = np.quantile(draws @ values / len(outcomes), [0.025, 0.975])
    return float(low), float(high)


def compare(first: PairScores, second: PairScores, reading: Reading) -> Comparison:
    """Compare two models on the same pairs."""
    difference = second.outcomes(reading) - first.outcomes(reading)
    low, high = _interval(difference)
    better, worse = int((difference > 0).sum()), int((difference < 0).sum())
    return Comparison(
        reading=reading, difference=float(difference.mean()), low=low, high=high,
        p=_sign_test(better, worse),
    )  # fmt: skip


def _sign_test(better: int, worse: int) -> float:
    """Return the chance of at least such an imbalance if both signs are equally likely."""
    total, fewer = better + worse, min(better, worse)
    # by logarithms: binomial coefficients of thousands of pairs are too large for floats
    logs = [
        math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1)
        for k in range(fewer + 1)
    ]
    tail = sum(math.exp(value - total * math.log(2)) for value in logs)
    return min(1.0, 2 * tail)
