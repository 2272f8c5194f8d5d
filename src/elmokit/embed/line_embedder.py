"""Lines of text to words and vectors: what `elmokit.embed.job` writes to files."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from elmokit.corpus.read_ahead import read_ahead
from elmokit.embed.embedder import Embedder
from elmokit.embed.options import EmbedOptions
from elmokit.embed.pooling import Pooling
from elmokit.inference.batching import NUM_BOUNDARIES
from elmokit.inference.state import LSTMState
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import (
    build_tokenizer,
    tokenizer_for_model,
    tokenizer_metadata,
)


class EmbeddedLine(NamedTuple):
    words: list[str]
    vectors: np.ndarray
    """(L, W, 2D) or (W, 2D), pooled (L, 2D) or (2D,), in the dtype of the file."""
    state: LSTMState | None
    """After the line, with the policy ``carry``."""


@dataclass(frozen=True)
class OwnLines:
    """Computes in this process; `elmokit.integrations.ray_data.RayLines` does on a cluster."""

    embedder: Embedder
    options: EmbedOptions

    @property
    def num_layers(self) -> int:
        return self.embedder.num_layers

    @cached_property
    def splitter(self) -> NormalizingTokenizer:
        embedder = self.embedder
        tokenizer = tokenizer_for_model(embedder.tokenizer_config, self.options.tokenizer)
        return NormalizingTokenizer(build_tokenizer(tokenizer), embedder.normalization)

    @cached_property
    def _pooling(self) -> Pooling | None:
        if self.options.pooling is None:
            return None
        return Pooling(self.embedder, self.options.pooling, layers=self.options.chosen_layers)

    def metadata(self) -> dict[str, Any]:
        """Return how the vectors are made, as in the file."""
        options = self.options
        return self.embedder.metadata(layers=options.chosen_layers, state=options.state) | {
            "tokenizer": tokenizer_metadata(self.splitter),
            "dtype": options.dtype,
            "format": options.file_format,
            "shard": f"{options.shard[0]}/{options.shard[1]}",
            **({} if options.pooling is None else {"pool": options.pooling}),
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
            sentences(), limit=2 * options.batch_tokens,
            weigh=lambda words: len(words) + NUM_BOUNDARIES,
        )  # fmt: skip
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
                words = pending.popleft()
                if self._pooling is not None:
                    vectors = self._pooling(vectors, words)
                yield EmbeddedLine(words, vectors.astype(dtype, copy=False), state)
