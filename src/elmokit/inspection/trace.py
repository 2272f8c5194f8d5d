"""`trace`: one word on its way through a biLM, every step in plain NumPy but the layers."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from elmokit.errors import InputError
from elmokit.inference.frozen_bilm import FrozenBiLM
from elmokit.shapes import Float, Int
from elmokit.text.char_vocab import CHAR_PADDING, WORD_BEGIN, WORD_END
from elmokit.text.given_sentences import GivenSentence, split_sentence
from elmokit.text.normalization import normalize
from elmokit.weights.stored_bilm import LoadedBiLM, StoredBiLM, open_bilm


@dataclass(frozen=True, kw_only=True)
class FilterTrace:
    """The N filters of one width: where each found its maximum, and that maximum."""

    width: int
    """In characters, which are bytes and boundaries."""
    positions: Int[np.ndarray, " N"]
    """First character of the winning window, as an index of the row; the first of equals."""
    windows: tuple[str, ...]
    """The winning windows as text, see `window_text`."""
    values: Float[np.ndarray, " N"]
    """After the activation."""


@dataclass(frozen=True, kw_only=True)
class HighwayTrace:
    """A highway layer: ``gates * relu(transform(x)) + (1 - gates) * x``."""

    gates: Float[np.ndarray, " F"]
    output: Float[np.ndarray, " F"]


@dataclass(frozen=True, kw_only=True)
class LayerTrace:
    """A layer at the word."""

    forward: Float[np.ndarray, " D"]
    backward: Float[np.ndarray, " D"]
    """In layer 0 both are the token's vector."""

    @property
    def norms(self) -> tuple[float, float]:
        """Euclidean norms of both halves."""
        return float(np.linalg.norm(self.forward)), float(np.linalg.norm(self.backward))


@dataclass(frozen=True, kw_only=True)
class WordTrace:
    """All numbers of a word. A word-input model has no characters, filters and highways."""

    words: tuple[str, ...]
    """The sentence as the model reads it."""
    index: int
    """Of the word."""
    word: str
    raw_bytes: tuple[int, ...]
    """UTF-8, as far as the row has room."""
    char_ids: tuple[int, ...]
    """The row that the CNN reads: word begin, bytes + 1, word end, padding."""
    filters: tuple[FilterTrace, ...]
    """By width; their values joined are the input of the first highway."""
    highways: tuple[HighwayTrace, ...]
    token: Float[np.ndarray, " D"]
    """The last highway after the projection; equals layer 0."""
    layers: tuple[LayerTrace, ...]
    weights: tuple[float, ...]
    """Of the layers in the mixture."""
    gamma: float
    mixture: Float[np.ndarray, " E"]
    """``gamma * sum(weight * layer)``, of 2D numbers."""

    @property
    def norms(self) -> tuple[tuple[float, float], ...]:
        """Those of the layers."""
        return tuple(layer.norms for layer in self.layers)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, and the norms."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**values, "norms": self.norms}


def trace(
    model: LoadedBiLM | str | PathLike[str],
    sentence: GivenSentence,
    *,
    word: int = 0,
    weights: Sequence[float] | None = None,
    gamma: float = 1.0,
) -> WordTrace:
    """Compute a sentence from the zero state, and keep what makes one word.

    Args:
        model: A loaded model, or its directory or name.
        sentence: A string, which the model's tokenizer splits, or a list of words.
        word: Index of the word in the sentence.
        weights: Of the layers in the mixture, token layer first, with a sum of 1; default: equal.
        gamma: Scale of the mixture.

    Raises:
        InputError: for a sentence without that word, weights that do not fit, or an infinite gamma.
        TypeError: if ``sentence`` is neither a string nor a list of words.
    """
    model = open_bilm(model)
    if model.config.lexicon is not None:
        raise InputError("The model reads characters by lists: there are no bytes to trace.")
    form = model.config.char_vocab.normalization
    raw_words = split_sentence(sentence, model.tokenize, where="`sentence`")
    words = [normalize(raw, form) for raw in raw_words]
    if not 0 <= word < len(words):
        listed = " ".join(f"{i}:{text}" for i, text in enumerate(words[:50])) or "none"
        raise InputError(f"`word` must be the index of one of the words ({listed}), got {word}.")
    mix = _checked_weights(weights, model.num_layers)
    if not math.isfinite(gamma):
        raise InputError(f"`gamma` must be a finite number, such as 0.5, got {gamma}.")
    bilm = FrozenBiLM(model)
    vectors, tokens = bilm.encode([words])
    layers = bilm.engine.run(vectors, tokens.sentences).vectors[0][:, word]  # (L, 2D)
    char_ids, filters, highways = _characters(model, words[word])
    dim = model.config.lstm.projection_dim
    weighted = np.array(mix, dtype=np.float32) @ layers
    return WordTrace(
        words=tuple(words), index=word, word=words[word], token=layers[0, :dim],
        raw_bytes=tuple(char - 1 for char in char_ids if char <= 256),
        char_ids=char_ids, filters=filters, highways=highways,
        layers=tuple(
            LayerTrace(forward=row[:dim], backward=row[dim:]) for row in layers
        ),
        weights=mix, gamma=gamma, mixture=np.float32(gamma) * weighted,
    )  # fmt: skip


def _characters(
    model: StoredBiLM, word: str
) -> tuple[tuple[int, ...], tuple[FilterTrace, ...], tuple[HighwayTrace, ...]]:
    """Follow the row of a word's characters through filters and highways."""
    cnn = model.config.char_cnn
    if cnn is None:
        return (), (), ()
    row = model.ids_of_words([word])[0]
    weights = {name.removeprefix("token_encoder."): array for name, array in model.arrays().items()}
    characters = weights["char_embedding.weight"][row]  # (C, E)
    filters = []
    for number, (width, count) in enumerate(cnn.filters):
        weight, bias = (weights[f"convolutions.{number}.{part}"] for part in ("weight", "bias"))
        windows = np.lib.stride_tricks.sliding_window_view(characters, width, axis=0)  # (P, E, w)
        answers = windows.reshape(len(windows), -1) @ weight.reshape(count, -1).T + bias  # (P, N)
        # The activation never falls, so the maximum may be taken before it.
        positions, best = answers.argmax(axis=0), answers.max(axis=0)
        filters.append(
            FilterTrace(
                width=width, positions=positions,
                windows=tuple(window_text(row[at : at + width].tolist()) for at in positions),
                values=np.maximum(best, 0) if cnn.activation == "relu" else np.tanh(best),
            )
        )  # fmt: skip
    # the order of the widths is that of the network's own concatenation
    x = np.concatenate([answer.values for answer in filters])  # (F,)
    highways = []
    for number in range(cnn.num_highway):
        carry, transform = (
            weights[f"highways.{number}.{part}.weight"] @ x
            + weights[f"highways.{number}.{part}.bias"]
            for part in ("carry", "transform")
        )
        gates = 1 / (1 + np.exp(-carry))
        x = gates * np.maximum(transform, 0) + (1 - gates) * x
        highways.append(HighwayTrace(gates=gates, output=x))
    return tuple(row.tolist()), tuple(filters), tuple(highways)


def window_text(char_ids: Sequence[int]) -> str:
    r"""Return a stretch of a row for readers.

    ``^`` is word begin, ``$`` word end, ``_`` padding; bytes that are no whole character are shown
    as ``\xeb``.
    """
    signs = {WORD_BEGIN + 1: "^", WORD_END + 1: "$", CHAR_PADDING + 1: "_"}
    text, pending = "", b""
    for char in char_ids:
        if char <= 256:
            pending += bytes([char - 1])
            continue
        text += pending.decode("utf-8", "backslashreplace") + signs.get(char, f"<{char}>")
        pending = b""
    return text + pending.decode("utf-8", "backslashreplace")


def _checked_weights(weights: Sequence[float] | None, num_layers: int) -> tuple[float, ...]:
    if weights is None:
        return (1 / num_layers,) * num_layers
    if len(weights) != num_layers or not abs(sum(weights) - 1) <= 1e-3:  # or NaN
        raise InputError(f"`weights` must be {num_layers} numbers with a sum of 1, got {weights}.")
    return tuple(map(float, weights))
