"""Lines of text to words and vectors: what `elmokit.embed.job` writes to files."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from elmokit.corpus.read_ahead import read_ahead
from elmokit.embed.embedder import Embedder
from elmokit.embed.options import EmbedOptions
from elmokit.embed.pooling import SIF, pool
from elmokit.inference.batching import NUM_BOUNDARIES
from elmokit.inference.state import LSTMState
from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import (
    TokenizerConfig,
    build_tokenizer,
    tokenizer_for_model,
    tokenizer_metadata,
)


class EmbeddedLine(NamedTuple):
    """One line."""

    words: list[str]
    vectors: np.ndarray
    """(L, W, 2D) or (W, 2D), pooled (L, 2D) or (2D,), in the dtype of the file; for SIF, which
    needs all lines, not pooled yet and float32."""
    state: LSTMState | None
    """After the line, with the policy ``carry``."""


@runtime_checkable
class LineEmbedder(Protocol):
    """Who computes: this process (`OwnLines`), or others."""

    @property
    def num_layers(self) -> int:
        """L."""
        ...

    @property
    def splitter(self) -> NormalizingTokenizer:
        """What splits lines into words."""
        ...

    def metadata(self) -> dict[str, Any]:
        """Return how the vectors are made, as in the file."""
        ...

    def stream(
        self, lines: Iterable[str], *, initial_state: LSTMState | None
    ) -> Generator[EmbeddedLine, None, None]:
        """Yield words and vectors of the lines, in order; reads some ahead."""
        ...


def splitter_for(
    own: TokenizerConfig, normalization: Normalization, options: EmbedOptions
) -> NormalizingTokenizer:
    """Return what splits lines for a model with its ``own`` tokenizer and normalization."""
    tokenizer = tokenizer_for_model(own, options.tokenizer)
    return NormalizingTokenizer(build_tokenizer(tokenizer), normalization)


@dataclass(frozen=True)
class OwnLines:
    """Computes in this process."""

    embedder: Embedder
    options: EmbedOptions

    @property
    def num_layers(self) -> int:
        """L."""
        return self.embedder.num_layers

    @property
    def splitter(self) -> NormalizingTokenizer:
        """What splits lines into words."""
        return self._splitter

    @cached_property
    def _splitter(self) -> NormalizingTokenizer:
        embedder = self.embedder
        return splitter_for(embedder.tokenizer_config, embedder.normalization, self.options)

    def metadata(self) -> dict[str, Any]:
        """Return how the vectors are made, as in the file."""
        options, splitter = self.options, self.splitter
        shard = options.shard
        return self.embedder.metadata(layers=options.chosen_layers, state=options.state) | {
            "tokenizer": tokenizer_metadata(splitter),
            "dtype": options.dtype,
            "format": options.file_format,
            "shard": f"{shard[0]}/{shard[1]}",
            **({} if options.pool is None else {"pool": options.pool}),
        }

    def stream(
        self, lines: Iterable[str], *, initial_state: LSTMState | None = None
    ) -> Generator[EmbeddedLine, None, None]:
        """Yield words and vectors of the lines, in order; a thread reads and splits them ahead."""
        options, dtype, splitter = self.options, np.dtype(self.options.dtype), self.splitter
        pending: deque[list[str]] = deque()

        def sentences() -> Iterator[list[str]]:
            for text in lines:
                words = splitter.tokenize(text)
                pending.append(words)
                yield words

        ahead = read_ahead(
            sentences(),
            limit=2 * options.batch_tokens,
            weigh=lambda words: len(words) + NUM_BOUNDARIES,
        )
        vectors_and_states = self.embedder.stream_with_states(
            ahead,
            layers=options.chosen_layers,
            state=options.state,
            batch_tokens=options.batch_tokens,
            initial_state=initial_state,
            check_words=splitter.name != self.embedder.tokenizer_config.name,
        )
        with closing(ahead):
            for vectors, state in vectors_and_states:
                if options.pool != SIF:
                    if options.pool is not None:
                        vectors = pool(vectors, pooling=options.pool)
                    vectors = vectors.astype(dtype, copy=False)
                yield EmbeddedLine(pending.popleft(), vectors, state)
