"""Reading times: how much a model's surprisal says about how long people look at a word.

Surprisal and entropy are those of typed words; what they are worth is their gain over a baseline
of length, frequency and position (`elmokit.evaluation.regression`).
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.errors import InputError, shown
from elmokit.evaluation.regression import Gain, gain, groups_of
from elmokit.evaluation.surprisal import TypedWord, typed_words
from elmokit.evaluation.tables import Table, sentences_of_items
from elmokit.shapes import Float
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.text.word_vocab import UNKNOWN_WORD
from elmokit.weights.stored_bilm import StoredBiLM, open_bilm

FIGURES = ("forward", "backward", "forward_entropy")
"""Fields of a typed word that predict its reading time."""
BOTH = "both directions"
_WORD_COLUMNS = ("sentence", "position", "word", "is_unknown", "spelling")

Place = tuple[int, int]
"""Number of a sentence, and position of a word in it, both from 0."""


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
    """Column of log frequencies; none: the logarithm of the rank, in the model's
    vocabulary, of the rarest word that it reads there."""
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
    gains: dict[str, dict[str, Gain]]
    """By measure, then by predictor."""
    metadata: dict[str, Any]
    header: list[str]
    rows: list[list[Any]]
    """The words with all their predictors."""


def reading_gains(model: str, path: Path, options: ReadingOptions) -> ReadingReport:
    """Return how much a model says about the reading times of a table."""
    _check_names(options)
    table, spill = Table(path), options.spill
    texts, places = _texts_of(table, options)
    loaded = open_bilm(model)
    typed = typed_words(loaded, texts, state=options.state, **options.scoring)
    words = observe(typed, places, table[options.word])
    measures = {name: table.numbers(name) for name in options.measures}
    others = {name: table.numbers(name) for name in options.against}
    frequencies = _frequencies(loaded, table, options)
    lengths = np.array([float(len(_plain(word))) for word in table[options.word]])
    needed = np.stack([*measures.values(), *others.values(), frequencies])
    is_kept = np.array([options.final or not word.is_last for word in words])
    usable = np.logical_and(~np.isnan(needed).any(axis=0), is_kept)
    if not usable.any():
        raise InputError(f"{path}: no row has all of the columns.")

    def table_columns(column: Float[np.ndarray, " N"]) -> Float[np.ndarray, "N K"]:
        at = dict(zip(places, column.tolist(), strict=True))
        return _with_spill(column, at, places, spill)[usable]

    own, own_places = list(compress(words, usable)), list(compress(places, usable))
    predictors = {name: model_columns(name, typed, own_places, spill=spill) for name in FIGURES}
    both = np.concatenate([predictors["forward"], predictors["backward"]], axis=1)
    predictors |= {BOTH: both} | {name: table_columns(column) for name, column in others.items()}
    base = {"length": table_columns(lengths), "frequency": table_columns(frequencies)}
    sentence, position = np.array(own_places).T
    baseline = np.concatenate([*base.values(), position[:, None].astype(float)], axis=1)
    items = None if options.sentence is not None else np.array(table[options.item])[usable].tolist()
    groups, group_name = groups_of(sentence, items)

    gains = {
        measure: {
            name: gain(values[usable], baseline, columns, groups)
            for name, columns in predictors.items()
        }
        for measure, values in measures.items()
    }
    columns = {name: column[usable] for name, column in {**measures, **others}.items()}
    columns |= base | {name: predictors[name] for name in FIGURES}
    header, rows = _tidy(own, own_places, columns)
    if items is not None:
        header = ["item", *header]
        rows = [[item, *row] for item, row in zip(items, rows, strict=True)]
    return ReadingReport(
        words=len(own), left_out=len(words) - len(own), sentences=len(texts),
        held_out_by=group_name, num_groups=len(set(groups.tolist())),
        unknown=float(np.mean([word.is_unknown for word in own])),
        spelled=any(word.spelling is not None for word in own),
        gains=gains, metadata=loaded.metadata(), header=header, rows=rows,
    )  # fmt: skip


def _check_names(options: ReadingOptions) -> None:
    """Refuse columns of the table that are called like another column of the result."""
    own, chosen = ("length", "frequency", *FIGURES), [*options.measures, *options.against]
    before = (f"{name}_{back}" for name in own for back in range(1, options.spill + 1))
    taken = {"item", *_WORD_COLUMNS, *own, *before, BOTH}
    for name in chosen:
        if chosen.count(name) > 1:
            raise InputError(f"--measure and --against name {name!r} twice.")
        if name in taken:
            raise InputError(
                f"{name!r} is a name that the result uses, too. Rename it in the table."
            )


def _texts_of(table: Table, options: ReadingOptions) -> tuple[list[str], list[Place]]:
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
    sentences: Sequence[list[TypedWord]], places: Sequence[Place], texts: Sequence[str]
) -> list[TypedWord]:
    """Look up the typed words that a table measures.

    ``places`` and ``texts`` are those of the rows of the table; punctuation does not count.
    """
    words = []
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
    return words


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
    vocab, form = model.word_vocab, model.config.char_vocab.normalization
    split = NormalizingTokenizer(build_tokenizer(model.tokenizer), form).tokenize
    ranks = []
    for word in table[options.word]:
        parts = [part for part in split(_plain(word)) if re.search(r"\w", part)]
        ids = vocab.encode(parts or [UNKNOWN_WORD])
        # an unknown word is rarer than any known one, whatever the place of <UNK>
        ranks.append(np.where(ids == vocab.unknown_id, len(vocab), ids).max())
    return np.log10(np.array(ranks) + 1.0)


def model_columns(
    name: str, sentences: Sequence[list[TypedWord]], places: Sequence[Place], *, spill: int
) -> Float[np.ndarray, "N K"]:
    """Return an attribute of the words at ``places``, and of the words before them."""
    at = {
        (number, position): float(getattr(word, name))
        for number, sentence in enumerate(sentences)
        for position, word in enumerate(sentence)
    }
    return _with_spill([at[place] for place in places], at, places, spill)


def _with_spill(
    own: Sequence[float] | Float[np.ndarray, " N"],
    at: Mapping[Place, float],
    places: Sequence[Place],
    spill: int,
) -> Float[np.ndarray, "N K"]:
    """Return the figures of words at ``places``, and of the words before, the nearest first.

    ``at`` has the figure of every word. Where it has none, the mean of ``own`` stands: no word is
    not an unsurprising one.
    """
    mean = float(np.nanmean(own))
    columns = [np.asarray(own)]
    for back in range(1, spill + 1):
        before = [at.get((number, place - back), mean) for number, place in places]
        columns.append(np.nan_to_num(before, nan=mean))
    return np.stack(columns, axis=1)


def _tidy(
    words: Sequence[TypedWord], places: Sequence[Place], figures: dict[str, np.ndarray]
) -> tuple[list[str], list[list[Any]]]:
    """Return the words with all figures (N,) or (N, K), those before as ``name_1``, …."""
    numbers = {
        f"{name}_{back}" if back else name: column
        for name, values in figures.items()
        for back, column in enumerate(np.atleast_2d(values.T))
    }
    rows = []
    for row, (word, place) in enumerate(zip(words, places, strict=True)):
        cells = [f"{column[row]:.6g}" for column in numbers.values()]
        spelling = "" if word.spelling is None else f"{word.spelling:.6g}"
        rows.append([*place, word.word, int(word.is_unknown), spelling, *cells])
    return [*_WORD_COLUMNS, *numbers], rows
