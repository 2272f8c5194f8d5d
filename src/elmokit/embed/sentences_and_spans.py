"""Vectors of sentences and of spans: mean, maximum, or SIF, in which rare words count more."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from elmokit.embed.streaming import DEFAULT_BATCH_TOKENS, StatePolicy, stream_vectors
from elmokit.errors import InputError, check_choice
from elmokit.inference.layers_and_states import Layers, check_layers
from elmokit.metrics.lexical_change import unit_rows
from elmokit.shapes import Float
from elmokit.text.alignment import align, covering_words
from elmokit.text.given_sentences import GivenSentence

if TYPE_CHECKING:
    from elmokit.embed.embedder import Embedder


SMOOTHING = 5e-4
"""a of the weights a / (a + p(w))."""
MAX_VOCABULARY = 5000
"""Most frequent words of a model's vocabulary whose vectors are measured."""
_LEAST_SHARE = 1e-6
"""Of the largest variance; components with less are noise, or the twin half of the token layer."""


@dataclass(frozen=True)
class SifStatistics:
    """What SIF knows of words: their probabilities, and how their vectors lie."""

    probabilities: Mapping[str, float]
    """p(w) of words in lower case; others are as rare as the rarest."""
    mean: Float[np.ndarray, "*layers E"]
    """Of word vectors of length 1."""
    whitening: Float[np.ndarray, "*layers E E"]
    """Turns centered vectors into ones without correlation; zeros what has no variance."""

    @classmethod
    def measure(
        cls,
        words: Sequence[str],
        probabilities: Mapping[str, float],
        vectors: Float[np.ndarray, "*layers V E"],
        *,
        remove: int | None = None,
    ) -> "SifStatistics":
        """Measure mean and covariance of the vectors of words.

        A word counts by p(w) times the square of its weight, as in the sentences of a text.
        ``remove`` takes away that many leading components and leaves the others as they are,
        instead of whitening.
        """
        weights = _weights(words, probabilities)
        share = weights**2 * [probabilities[word.lower()] for word in words]
        share = share / share.sum()
        rows = unit_rows(vectors)
        mean = share @ rows  # (*layers, E)
        centered = rows - mean[..., None, :]
        # of all layers at once: leading axes are those of the layers
        covariance = np.swapaxes(centered, -1, -2) @ (centered * share[:, None])
        variances, axes = np.linalg.eigh(covariance)  # ascending
        has_variance = variances > _LEAST_SHARE * variances[..., -1:]
        scales = np.where(has_variance, np.maximum(variances, 1e-30) ** -0.5, 0.0)
        if remove is not None:
            scales = np.ones_like(scales)
            scales[..., scales.shape[-1] - remove :] = 0.0
        # A diag(s) A^T: into the axes of the components, scaled there, and back
        whitening = (axes * scales[..., None, :]) @ np.swapaxes(axes, -1, -2)
        return cls(probabilities, mean.astype(np.float32), whitening.astype(np.float32))

    @classmethod
    def of_vocabulary(cls, embedder: "Embedder", layers: Layers | str) -> "SifStatistics":
        """Measure a model by its vocabulary alone: p(w) by rank (Zipf), vectors of single words."""
        vocab = embedder.word_vocab
        words = [] if vocab is None else vocab.frequent_words()
        if len(words) < 2:
            raise InputError(
                'pooling="sif" needs frequencies of words, and this model has no vocabulary. Use '
                'pooling="mean", or give `statistics`, a .safetensors file of `elmokit distil`.'
            )
        ranks = 1.0 / np.arange(1, len(words) + 1)
        probabilities = lower_case_shares(zip(words, ranks.tolist(), strict=True))
        words = words[:MAX_VOCABULARY]
        bilm, which = embedder._bilm, check_layers(layers, embedder.num_layers)
        # not `Embedder.stream`, whose checks are of the words of users
        stream = stream_vectors(
            ([word] for word in words), bilm.engine, bilm.encode, layers=which,
            batch_tokens=DEFAULT_BATCH_TOKENS,
        )  # fmt: skip
        vectors = np.concatenate([sentence.vectors for sentence in stream], axis=-2)
        return cls.measure(words, probabilities, vectors)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, layers: Layers | str, model_hash: str
    ) -> "SifStatistics":
        """Read the statistics of a table that `elmokit distil` made of ``layers`` of this model."""
        from elmokit.vectors import safetensors_file

        table = safetensors_file.read_table(path)
        if table.layers != str(layers):
            raise InputError(f"{path} is a table of layers={table.layers}, not layers={layers}.")
        if (made_with := str(table.made_by.get("model_hash"))) != model_hash:
            raise InputError(
                f"{path} is a table of another model (hash {made_with[:12]}, not "
                f"{model_hash[:12]}): make one of this model with `elmokit distil`."
            )
        shares = zip(table.words, table.counts.tolist(), strict=True)
        return cls(lower_case_shares(shares), table.mean, table.whitening)

    def words(
        self, vectors: Float[np.ndarray, "*layers W E"], words: Sequence[str]
    ) -> Float[np.ndarray, "*layers W E"]:
        """Return the whitened vectors of words, each times its weight."""
        rows = (unit_rows(vectors) - self.mean[..., None, :]) @ self.whitening
        return (rows * _weights(words, self.probabilities)[:, None]).astype(np.float32)

    def pool(
        self, vectors: Float[np.ndarray, "*layers W E"], words: Sequence[str]
    ) -> Float[np.ndarray, "*layers E"]:
        """Return the vector of a sentence, the mean of its `words`; zeros if there are none."""
        total = self.words(vectors, words).sum(axis=-2, dtype=np.float64).astype(np.float32)
        return total / np.float32(max(1, len(words)))


def lower_case_shares(counts: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return p(w) of words in lower case from counts by spelling."""
    sums: Counter[str] = Counter()
    for word, count in counts:
        sums[word.lower()] += count  # pyright: ignore[reportArgumentType]
    total = sums.total()
    return {word: count / total for word, count in sums.items()}


def _weights(words: Sequence[str], probabilities: Mapping[str, float]) -> np.ndarray:
    p = np.array([probabilities.get(word.lower(), 0.0) for word in words])
    return SMOOTHING / (SMOOTHING + p)


PoolingName = Literal["sif", "mean", "max"]


def default_layers(pooling: str) -> Layers:
    """Return the layers that a pooling takes by default."""
    return 0 if pooling == "sif" else "average"


class Pooling:
    """One way to pool the words of sentences of one model.

    Args:
        embedder: The model.
        pooling: ``"sif"``, ``"mean"`` or ``"max"``; default: SIF, or the mean for a model without
            vocabulary.
        layers: Those of the vectors that will be pooled; default: `default_layers`.
        statistics: For SIF: a file of `elmokit distil`; default: the model's vocabulary.
    """

    def __init__(
        self,
        embedder: "Embedder",
        pooling: str | None = None,
        *,
        layers: Layers | str | None = None,
        statistics: str | os.PathLike[str] | None = None,
    ) -> None:
        if pooling is None:
            has_words = statistics is not None or embedder.word_vocab is not None
            pooling = "sif" if has_words else "mean"
        self.name = check_choice(pooling, PoolingName, name="pooling")
        if statistics is not None and pooling != "sif":
            raise InputError(f'`statistics` are for pooling="sif", got pooling="{pooling}".')
        layers = default_layers(pooling) if layers is None else layers
        self.layers = check_layers(layers, embedder.num_layers)
        self._sif: SifStatistics | None = None
        if statistics is not None:
            model_hash = str(embedder.metadata()["model_hash"])
            self._sif = SifStatistics.load(statistics, layers=self.layers, model_hash=model_hash)
        elif pooling == "sif":
            self._sif = embedder.sif_statistics(self.layers)

    def __call__(
        self, vectors: Float[np.ndarray, "*layers W E"], words: list[str]
    ) -> Float[np.ndarray, "*layers E"]:
        """Return one float32 vector for the words of a sentence; zeros if there are none."""
        if self._sif is not None:
            return self._sif.pool(vectors, words)
        if not words:
            return np.zeros((*vectors.shape[:-2], vectors.shape[-1]), dtype=np.float32)
        if self.name == "max":
            return vectors.max(axis=-2).astype(np.float32, copy=False)
        return vectors.mean(axis=-2, dtype=np.float64).astype(np.float32)


def embed_sentences(
    embedder: "Embedder",
    sentences: Iterable[GivenSentence],
    *,
    pooling: str | None = None,
    layers: Layers | str | None = None,
    state: StatePolicy | str = "reset",
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    statistics: str | os.PathLike[str] | None = None,
) -> np.ndarray:
    """Return one vector per sentence: float32 (N, 2D), with all layers (N, L, 2D).

    The vector of an empty sentence is zeros.

    Args:
        embedder: The model.
        sentences: As in `embed`.
        pooling: ``"sif"`` tells best how similar sentences are: rare words count more, and vectors
            are whitened. ``"mean"`` and ``"max"`` are over the plain vectors of the words. Default:
            SIF, or the mean for a model without vocabulary.
        layers: As in `embed`; default: 0 with SIF, for which context layers are worse; else
            ``"average"``, which TF-Hub's ELMo pooled.
        state: As in `embed`.
        batch_tokens: As in `embed`.
        statistics: For SIF: a file of `elmokit distil` (.safetensors) whose word frequencies and
            components are used; default: those of the model's vocabulary.

    Raises:
        InputError: for an unknown pooling, and with SIF for a model without vocabulary if there
            are no ``statistics``.
    """
    pool = Pooling(embedder, pooling, layers=layers, statistics=statistics)
    stream = embedder.stream(sentences, layers=pool.layers, state=state, batch_tokens=batch_tokens)
    rows = [pool(sentence.vectors, sentence.words) for sentence in stream]
    leading = [embedder.num_layers] if pool.layers == "all" else []
    return np.array(rows, dtype=np.float32).reshape(-1, *leading, embedder.dim)


def embed_spans(
    embedder: "Embedder",
    text: GivenSentence,
    spans: Iterable[tuple[int, int]],
    *,
    pooling: str = "mean",
    layers: Layers | str | None = None,
    state: StatePolicy | str = "reset",
) -> np.ndarray:
    """Return one vector per span of a text, pooled over its words; each has read the whole text.

    Args:
        embedder: The model.
        text: A string of any length, or its words, read once, as one sentence.
        spans: ``[start, end)`` of each: characters of the string, or words of the list. A word that
            is partly in a span belongs to it.
        pooling: As in `embed_sentences`; the mean knows the context of a span, SIF does not.
        layers: As in `embed_sentences`.
        state: As in `embed`.

    Returns:
        float32 (N, 2D) for N spans, with all layers (N, L, 2D).

    Raises:
        InputError: for a span that is empty, outside the text or without a word.
    """
    pool = Pooling(embedder, pooling, layers=layers)
    ((words, vectors, _),) = embedder.stream([text], layers=pool.layers, state=state)
    in_text = isinstance(text, str)
    offsets = align(words, text) if in_text else tuple((k, k + 1) for k in range(len(words)))
    if offsets is None:
        raise InputError("`text` and its tokens differ. Give the list of words, and spans of them.")
    pooled: list[np.ndarray] = []
    for number, (start, end) in enumerate(spans):
        place = covering_words(offsets, start, end) if 0 <= start < end <= len(text) else None
        if place is None:
            kind = "characters" if in_text else "words"
            raise InputError(
                f"spans[{number}], [{start}, {end}), has no word, or is outside the {len(text):,} "
                f"{kind} of `text`."
            )
        pooled.append(pool(vectors[..., slice(*place), :], words[slice(*place)]))
    shape = (*vectors.shape[:-2], vectors.shape[-1])
    return np.array(pooled, dtype=np.float32).reshape(-1, *shape)
