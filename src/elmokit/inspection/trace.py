"""`trace`: one word on its way through a biLM, in the numbers of the plain modules of `bilm`."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from elmokit.bilm.char_cnn import CharTokenEncoder, Highway
from elmokit.errors import InputError
from elmokit.text.char_vocab import CHAR_PADDING, WORD_BEGIN, WORD_END
from elmokit.text.given_sentences import GivenSentence, split_sentence
from elmokit.text.normalization import normalize
from elmokit.weights.model_dir import PretrainedBiLM, load_model


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
    model: PretrainedBiLM | str | PathLike[str],
    sentence: GivenSentence,
    *,
    word: int = 0,
    weights: Sequence[float] | None = None,
    gamma: float = 1.0,
) -> WordTrace:
    """Compute a sentence with the plain modules, from the zero state, and keep what makes one word.

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
    model = model if isinstance(model, PretrainedBiLM) else load_model(model)
    if model.config.lexicon is not None:
        raise InputError(
            "The model reads characters and words by lists (config.json, `lexicon`): there are no "
            "bytes to trace. `elmokit embed` gives its layers."
        )
    form = model.config.char_vocab.normalization
    raw_words = split_sentence(sentence, model.tokenize, where="`sentence`")
    words = [normalize(raw, form) for raw in raw_words]
    if not 0 <= word < len(words):
        listed = " ".join(f"{i}:{text}" for i, text in enumerate(words[:50])) or "none"
        raise InputError(f"`word` must be the index of one of the words ({listed}), got {word}.")
    mix = _checked_weights(weights, model.num_layers)
    if not math.isfinite(gamma):
        raise InputError(f"`gamma` must be a finite number, such as 0.5, got {gamma}.")
    was_training = model.training
    model.eval()  # without dropout
    try:
        with torch.inference_mode():
            device = next(model.parameters()).device
            layers = model(model.encode([words]).to(device)).layers[:, 0, word + 1].cpu()  # (L, 2D)
            ids = model.encode_words([words[word]]).to(device)
            char_ids, filters, highways = _characters(model.token_encoder, ids)
            token = model.encode_tokens(ids)[0].cpu().numpy()
    finally:
        model.train(was_training)
    dim = model.config.lstm.projection_dim
    weighted = torch.tensor(mix, dtype=layers.dtype) @ layers
    return WordTrace(
        words=tuple(words), index=word, word=words[word], token=token,
        raw_bytes=tuple(char - 1 for char in char_ids if char <= 256),
        char_ids=char_ids, filters=filters, highways=highways,
        layers=tuple(
            LayerTrace(forward=row[:dim].numpy(), backward=row[dim:].numpy()) for row in layers
        ),
        weights=mix, gamma=gamma, mixture=(gamma * weighted).numpy(),
    )  # fmt: skip


def _characters(
    encoder: torch.nn.Module, char_ids: torch.Tensor
) -> tuple[tuple[int, ...], tuple[FilterTrace, ...], tuple[HighwayTrace, ...]]:
    """Follow one row of characters (1, C) through filters and highways."""
    if not isinstance(encoder, CharTokenEncoder):
        return (), (), ()
    row = tuple(char_ids[0].tolist())
    filters, pooled = [], []
    for (width, _), answers in zip(
        encoder.config.filters, encoder.responses(char_ids), strict=True
    ):
        # The activation never falls, so the maximum may be taken before it.
        best, positions = answers[0].max(dim=0)
        pooled.append(encoder.activate(best))
        filters.append(
            FilterTrace(
                width=width, positions=positions.cpu().numpy(),
                windows=tuple(window_text(row[at : at + width]) for at in positions.tolist()),
                values=pooled[-1].cpu().numpy(),
            )
        )  # fmt: skip
    x = torch.cat(pooled).unsqueeze(0)  # (1, F)
    highways = []
    for highway in encoder.highways:
        assert isinstance(highway, Highway)
        gates, x = highway.gate(x), highway(x)
        highways.append(HighwayTrace(gates=gates[0].cpu().numpy(), output=x[0].cpu().numpy()))
    return row, tuple(filters), tuple(highways)


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
        raise InputError(
            f"`weights` must be {num_layers} numbers, one per layer, with a sum of 1, got "
            f"{', '.join(map(str, weights))}."
        )
    return tuple(map(float, weights))
