"""Vectors of whole sentences."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from elmokit.embed.pooling import Pooling
from elmokit.embed.streaming import DEFAULT_BATCH_TOKENS, StatePolicy
from elmokit.inference.results import Layers
from elmokit.text.given_sentences import GivenSentence, split_sentences

if TYPE_CHECKING:
    from elmokit.embed.embedder import Embedder


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
            are whitened (`elmokit.embed.sif`). ``"mean"`` and ``"max"`` are over the plain vectors
            of the words. Default: SIF, or the mean for a model without vocabulary.
        layers: As in `embed`; default: 0 with SIF, for which context layers are worse; else
            ``"average"``, which TF-Hub's ELMo pooled.
        state: As in `embed`.
        batch_tokens: As in `embed`.
        statistics: For SIF: a file of `elmokit distil` (.safetensors) whose word frequencies and
            components are used; default: those of the model's vocabulary.

    Raises:
        TypeError, ValueError: as `embed`; also for an unknown pooling, and with SIF for a model
            without vocabulary if there are no ``statistics``.
    """
    pool = Pooling(embedder, pooling, layers=layers, statistics=statistics)
    pending: deque[list[str]] = deque()

    def words() -> Iterator[list[str]]:
        for sentence in split_sentences(sentences, embedder.tokenizer.tokenize):
            pending.append(sentence)
            yield sentence

    stream = embedder.stream_with_states(
        words(), layers=pool.layers, state=state, batch_tokens=batch_tokens
    )
    rows = [pool(vectors, pending.popleft()) for vectors, _ in stream]
    leading = [embedder.num_layers] if pool.layers == "all" else []
    return np.array(rows, dtype=np.float32).reshape(-1, *leading, embedder.dim)
