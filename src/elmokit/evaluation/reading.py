"""Reading times: how much a model's surprisal says about how long people look at a word.

Surprisal and entropy are those of typed words; what they are worth is their gain over a baseline
of length, frequency and position (`elmokit.evaluation.regression`).
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.errors import InputError, shown
from elmokit.evaluation.regression import Gain, gain, groups_of
from elmokit.evaluation.surprisal import TypedWord, typed_words
from elmokit.evaluation.tables import Table, sentences_of_items
from elmokit.shapes import Bool, Float, Int
from elmokit.weights.stored_bilm import StoredBiLM, open_bilm

FIGURES = ("forward", "backward", "forward_entropy")
"""Fields of a typed word that predict its reading time."""
BOTH = "both directions"

Columns = dict[str, np.ndarray]
"""(N,), or (N, 1 + spill) with the words before, by name."""


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """What a table of reading times holds, and what is predicted from what."""

    measures: Sequence[str]
    """Columns of reading times or amplitudes."""
    word: str = "word"
    position: str = "position"
    first_position: int = 1
    """Whether positions count from 0 or 1."""
    sentence: str | None = None
    """Column of the whole sentence; none: the words of an item are its text."""
    item: str = "item"
    frequency: str | None = None
    """Column of log frequencies; none: the logarithm of the rank in the model's vocabulary."""
    against: Sequence[str] = ()
    """Columns of further predictors."""
    spill: int = 1
    """Words before each whose predictors count, too."""
    final: bool = False
    """Whether the last words of sentences count."""
    state: str = "warm"
    """As for `surprisal`."""
    scoring: Mapping[str, Any] = field(default_factory=dict)
    """Further options of `typed_words`."""


Gains = dict[str, dict[str, Gain]]
"""By measure, then by predictor."""


@dataclass(frozen=True, kw_only=True)
class ReadingReport:
    words: int
    left_out: int
    sentences: int
    held_out_by: str
    """``item`` or ``sentence``."""
    num_groups: int
    unknown: float
    """Share of the words outside the vocabulary."""
    spelled: bool
    gains: Gains
    metadata: dict[str, Any]
    header: list[str]
    rows: list[list[Any]]
    """The words with all their predictors."""


@dataclass(frozen=True)
class Observations:
    """Words that were measured: rows of a table that can go into a regression."""

    words: list[TypedWord]
    sentence: Int[np.ndarray, " N"]
    position: Int[np.ndarray, " N"]
    before: list[list[TypedWord]]
    """The words before, the nearest first."""

    def keep(self, rows: Bool[np.ndarray, " N"]) -> "Observations":
        numbers = np.flatnonzero(rows).tolist()
        return Observations(
            [self.words[row] for row in numbers], self.sentence[rows], self.position[rows],
            [self.before[row] for row in numbers],
        )  # fmt: skip


def reading_gains(model: str, path: Path, options: ReadingOptions) -> ReadingReport:
    """Return how much a model says about the reading times of a table."""
    table, spill = Table(path), options.spill
    texts, located = _texts_of(table, options)
    loaded = open_bilm(model)
    typed = typed_words(loaded, texts, state=options.state, **options.scoring)
    words = observe(typed, located, table[options.word], spill=spill)
    measures = {name: table.numbers(name) for name in options.measures}
    others = {name: table.numbers(name) for name in options.against}
    frequencies = _frequencies(loaded, table, options)
    lengths = np.array([float(len(_plain(word))) for word in table[options.word]])
    needed = np.stack([*measures.values(), *others.values(), frequencies])
    is_kept = np.array([options.final or not word.is_last for word in words.words])
    usable = np.logical_and(~np.isnan(needed).any(axis=0), is_kept)
    if not usable.any():
        raise InputError(f"{path}: no row has all of the columns.")
    base = {
        name: _with_spill(column, words, spill)
        for name, column in (("length", lengths), ("frequency", frequencies))
    }
    place = words.position[:, None].astype(float)
    baseline = np.concatenate([*base.values(), place], axis=1)[usable]
    own = words.keep(usable)
    predictors = _predictors(own, spill) | {
        name: _with_spill(column, words, spill)[usable] for name, column in others.items()
    }
    items = None if options.sentence is not None else np.array(table[options.item])[usable].tolist()
    groups, group_name = groups_of(own.sentence, items)

    gains = {
        measure: {
            name: gain(values[usable], baseline, columns, groups)
            for name, columns in predictors.items()
        }
        for measure, values in measures.items()
    }
    figures = {name: column[usable] for name, column in {**measures, **others, **base}.items()}
    figures |= {name: predictors[name] for name in FIGURES}
    header, rows = _tidy(own, figures)
    if items is not None:
        header, rows = (
            ["item", *header],
            [[item, *row] for item, row in zip(items, rows, strict=True)],
        )
    return ReadingReport(
        words=int(usable.sum()), left_out=int((~usable).sum()), sentences=len(texts),
        held_out_by=group_name, num_groups=len(set(groups.tolist())),
        unknown=float(np.mean([word.is_unknown for word in own.words])),
        spelled=any(word.spelling is not None for word in own.words),
        gains=gains, metadata=loaded.metadata(), header=header, rows=rows,
    )  # fmt: skip


def _texts_of(table: Table, options: ReadingOptions) -> tuple[list[str], list[tuple[int, int]]]:
    """Return the sentences of a table, and for each row its sentence and its place there."""
    order = table.places(options.position, first=options.first_position).tolist()
    if options.sentence is None:
        return sentences_of_items(table[options.item], table[options.word], order)
    numbers: dict[str, int] = {}
    located = [
        (numbers.setdefault(text, len(numbers)), place)
        for text, place in zip(table[options.sentence], order, strict=True)
    ]
    return list(numbers), located


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


def _plain(word: str) -> str:
    """Return a word without the signs around it, as the vocabulary has it."""
    return re.sub(r"^\W+|\W+$", "", word) or word


def _frequencies(
    model: StoredBiLM, table: Table, options: ReadingOptions
) -> Float[np.ndarray, " N"]:
    if options.frequency is not None:
        return table.numbers(options.frequency)
    assert model.word_vocab is not None
    vocab = model.word_vocab
    ids = vocab.encode([_plain(word) for word in table[options.word]])
    # an unknown word is rarer than any known one, whatever the place of <UNK>
    return np.log10(np.where(ids == vocab.unknown_id, len(vocab), ids) + 1.0)


def _predictors(words: Observations, spill: int) -> Columns:
    """Return the columns that come from the model."""
    columns = {name: columns_of(words, name, spill=spill) for name in FIGURES}
    both = np.concatenate([columns["forward"], columns["backward"]], axis=1)
    return {**columns, BOTH: both}


def columns_of(observations: Observations, name: str, *, spill: int) -> Float[np.ndarray, "N K"]:
    """Return an attribute of the words, and of the words before them."""
    own = [float(getattr(word, name)) for word in observations.words]
    # the mean where there is no word before: no word is not an unsurprising one
    mean, rows = float(np.mean(own)), observations.before
    before = [
        [float(getattr(row[back], name)) if back < len(row) else mean for row in rows]
        for back in range(spill)
    ]
    return np.array([own, *before]).T


def _with_spill(
    column: Float[np.ndarray, " N"], words: Observations, spill: int
) -> Float[np.ndarray, "N K"]:
    """Return a column of the table and those of the words before; its mean where there is none."""
    places = list(zip(words.sentence.tolist(), words.position.tolist(), strict=True))
    at = dict(zip(places, column.tolist(), strict=True))
    mean = float(np.nanmean(column))
    columns = [column]
    for back in range(1, spill + 1):
        before = [at.get((number, place - back), mean) for number, place in places]
        columns.append(np.nan_to_num(np.array(before, dtype=float), nan=mean))
    return np.stack(columns, axis=1)


def _tidy(words: Observations, figures: Columns) -> tuple[list[str], list[list[Any]]]:
    """Return the words with all figures, those of the words before as ``name_1``, …."""
    numbers = {
        f"{name}_{back}" if back else name: column
        for name, values in figures.items()
        for back, column in enumerate(np.atleast_2d(values.T))
    }
    rows = []
    places = zip(words.sentence.tolist(), words.position.tolist(), words.words, strict=True)
    for row, (sentence, place, word) in enumerate(places):
        cells = [f"{column[row]:.6g}" for column in numbers.values()]
        spelling = "" if word.spelling is None else f"{word.spelling:.6g}"
        rows.append([sentence, place, word.word, int(word.is_unknown), spelling, *cells])
    return ["sentence", "position", "word", "is_unknown", "spelling", *numbers], rows
