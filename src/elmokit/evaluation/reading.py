"""Reading times: how much a model's surprisal says about how long people look at a word.

Surprisal and entropy are those of typed words. The gain of a predictor is how much better a linear
regression with it predicts words of sentences that it was not fitted on, in nats of Gaussian
log-likelihood a word and in points of R². Source: Goodkind and Bicknell 2018; Wilcox et al. 2020
(out-of-sample gains).
"""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from elmokit.errors import InputError, shown
from elmokit.evaluation.surprisal import TypedWord
from elmokit.shapes import Bool, Float, Int

NUM_ROUNDS = 2000
NUM_FOLDS = 10
MIN_SENTENCES = 2 * NUM_FOLDS


@dataclass(frozen=True)
class Observations:
    """Words that were measured: rows of a table that can go into a regression."""

    words: list[TypedWord]
    sentence: Int[np.ndarray, " N"]
    position: Int[np.ndarray, " N"]
    before: list[list[TypedWord]]
    """The words before, the nearest first."""

    def keep(self, rows: Bool[np.ndarray, " N"]) -> "Observations":
        chosen = np.flatnonzero(rows).tolist()
        return Observations(
            [self.words[row] for row in chosen], self.sentence[rows], self.position[rows],
            [self.before[row] for row in chosen],
        )  # fmt: skip


def observe(
    sentences: Sequence[list[TypedWord]],
    places: Iterable[tuple[int, int]],
    texts: Sequence[str],
    *,
    spill: int,
) -> Observations:
    """Look up the typed words that a table measures, and ``spill`` words before each.

    ``places`` and ``texts`` are the rows of the table: (sentence, position from 0) and word, whose
    punctuation does not count.
    """
    words, before = [], []
    places = list(places)
    for (number, position), text in zip(places, texts, strict=True):
        sentence = sentences[number]
        typed = sentence[position] if 0 <= position < len(sentence) else None
        if typed is None or _bare(typed.word) != _bare(text):
            at = "there is none" if typed is None else f"it is {shown(typed.word)}"
            raise InputError(
                f"The table has {shown(text)} as word {position} (from 0) of the sentence "
                f"{shown(' '.join(word.word for word in sentence))}, but {at}. --position, "
                "--first-position and --sentence say how places are counted."
            )
        words.append(typed)
        before.append(sentence[max(0, position - spill) : position][::-1])
    numbers, positions = np.array(places, dtype=np.int64).reshape(-1, 2).T
    return Observations(words, numbers, positions, before)


def _bare(text: str) -> str:
    """Return a word without the punctuation around it, in lower case."""
    signs = "".join(sign for sign in text if unicodedata.category(sign).startswith("P"))
    return text.strip(signs).lower()


def columns_of(
    observations: Observations, names: Sequence[str], *, spill: int
) -> Float[np.ndarray, "N K"]:
    """Return attributes of the words, and of the words before them."""
    columns = []
    for name in names:
        own = [float(getattr(word, name)) for word in observations.words]
        # the mean where there is no word before: no word is not an unsurprising one
        mean = float(np.mean(own))
        columns.append(own)
        for back in range(spill):
            rows = observations.before
            columns.append(
                [float(getattr(row[back], name)) if back < len(row) else mean for row in rows]
            )
    return np.array(columns).T.reshape(len(observations.words), len(columns))


@dataclass(frozen=True, kw_only=True)
class Gain:
    """What a predictor adds to the baseline, on words of sentences that were not fitted."""

    nats: float
    """Log-likelihood a word, with minus without the predictor."""
    low: float
    """95 % interval by bootstrap over the groups."""
    high: float
    r2_points: float
    """R² out of sample, in percent, with minus without the predictor."""
    slope: float
    """Change of the measure for each bit of the predictor, fitted on all words."""


def groups_of(
    sentence: Int[np.ndarray, " N"], item: Sequence[str] | None
) -> tuple[Int[np.ndarray, " N"], str]:
    """Return the number of what is held out together, and its name."""
    # words of one item (a story) are no independent evidence; fewer items cannot be held out
    if item is not None:
        names, numbers = np.unique(list(item), return_inverse=True)
        if len(names) >= MIN_SENTENCES:
            return numbers, "item"
    return sentence, "sentence"


def gain(
    measure: Float[np.ndarray, " N"],
    baseline: Float[np.ndarray, "N B"],
    predictor: Float[np.ndarray, "N P"],
    group: Int[np.ndarray, " N"],
) -> Gain:
    """Return the gain of a predictor (its first column and those of the words before).

    Groups (`groups_of`) are dealt to ten folds in a fixed random order; every model of the same
    table has the same folds.
    """
    numbers, groups = np.unique(group, return_inverse=True)
    if len(numbers) < MIN_SENTENCES:
        raise InputError(
            f"{len(numbers)} items or sentences are too few to hold some out: give {MIN_SENTENCES}."
        )
    fold = (np.random.default_rng(0).permutation(len(numbers)) % NUM_FOLDS)[groups]
    with_it = np.concatenate([baseline, predictor], axis=1)
    without, rest_without = _held_out(measure, baseline, fold)
    likelihood, rest = _held_out(measure, with_it, fold)
    difference = likelihood - without
    total = float(((measure - measure.mean()) ** 2).sum())
    draws = np.random.default_rng(0).multinomial(
        len(numbers), np.full(len(numbers), 1 / len(numbers)), size=NUM_ROUNDS
    )
    shares = (draws @ np.bincount(groups, difference)) / (draws @ np.bincount(groups))
    low, high = np.quantile(shares, [0.025, 0.975])
    slopes = _fit(_standard(with_it, with_it), measure) / _scale(with_it)
    return Gain(
        nats=float(difference.mean()), low=float(low), high=float(high),
        r2_points=100 * float((rest_without**2).sum() - (rest**2).sum()) / total,
        slope=float(slopes[baseline.shape[1]]),
    )  # fmt: skip


def _held_out(
    measure: np.ndarray, columns: np.ndarray, fold: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return log-likelihood and error of every row under a regression fitted on other folds."""
    likelihood, errors = np.empty(len(measure)), np.empty(len(measure))
    for number in range(NUM_FOLDS):
        rows = fold == number
        train = columns[~rows]
        center = measure[~rows].mean()
        weights = _fit(_standard(train, train), measure[~rows] - center)
        fitted = measure[~rows] - center - _standard(train, train) @ weights
        variance = float((fitted**2).mean())
        errors[rows] = measure[rows] - center - _standard(columns[rows], train) @ weights
        likelihood[rows] = -0.5 * (math.log(2 * math.pi * variance) + errors[rows] ** 2 / variance)
    return likelihood, errors


def _scale(columns: np.ndarray) -> np.ndarray:
    deviations = columns.std(axis=0)
    return np.where(deviations > 0, deviations, 1.0)


def _standard(columns: np.ndarray, reference: np.ndarray) -> np.ndarray:
    return (columns - reference.mean(axis=0)) / _scale(reference)


def _fit(columns: np.ndarray, measure: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(columns, measure - measure.mean(), rcond=None)[0]
