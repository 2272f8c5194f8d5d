"""Streams of sentences to streams of vectors: read ahead, batched by length, in bounded memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import numpy as np

from elmokit.errors import check_choice
from elmokit.inference.contexts import DistinctTokens, batch_by_length, fill_buffers
from elmokit.inference.engine import Engine
from elmokit.inference.results import Layers, LSTMState

StatePolicy = Literal["reset", "carry", "warm"]
"""What a sentence starts from: zeros, the end of the previous sentence, or one fixed warm state."""

DEFAULT_BATCH_TOKENS = 4096
"""Positions (words and sentence boundaries) that are computed together."""
BATCHES_PER_BUFFER = 4
"""A stream is read this many batches ahead, to batch sentences of similar length."""


class EmbeddedSentence(NamedTuple):
    words: list[str]
    vectors: np.ndarray
    """(L, W, 2D) or (W, 2D), pooled (L, 2D) or (2D,)."""
    state: LSTMState | None
    """After the sentence, with the policy ``carry``."""


def check_state_policy(state: str) -> StatePolicy:
    """Return ``state``; raise `InputError` with the choices if it is not a policy."""
    return cast(StatePolicy, check_choice(state, StatePolicy, name="state"))


@dataclass(frozen=True)
class VectorStream:
    """Turns sentences of words into vectors, in the same order."""

    engine: Engine
    encode: Callable[[list[list[str]]], tuple[np.ndarray, DistinctTokens]]
    """As `FrozenBiLM.encode`."""
    layers: Layers
    batch_tokens: int

    def carried(
        self, sentences: Iterable[list[str]], state: LSTMState | None
    ) -> Iterator[EmbeddedSentence]:
        """Start each sentence from the state after the previous one."""
        for buffer in self._buffers(sentences):
            vectors, tokens = self.encode(buffer)
            for words, sentence in zip(buffer, tokens.sentences, strict=True):
                out = self.engine.run(vectors, [sentence], layers=self.layers, state=state)
                state = out.state
                yield EmbeddedSentence(words, out.vectors[0], state)

    def separate(
        self, sentences: Iterable[list[str]], start: LSTMState | None
    ) -> Iterator[EmbeddedSentence]:
        """Start all sentences from one state (one row), or from zeros."""
        for buffer in self._buffers(sentences):
            for words, vectors in zip(buffer, self._of_buffer(buffer, start), strict=True):
                yield EmbeddedSentence(words, vectors, None)

    def _buffers(self, sentences: Iterable[list[str]]) -> Iterator[list[list[str]]]:
        return fill_buffers(sentences, max_tokens=self.batch_tokens * BATCHES_PER_BUFFER)

    def _of_buffer(self, buffer: list[list[str]], start: LSTMState | None) -> list[np.ndarray]:
        vectors, tokens = self.encode(buffer)
        if self.layers == 0:
            # the token layer needs no LSTM, and has the same vector in both halves
            return [np.tile(vectors[sentence[1:-1]], 2) for sentence in tokens.sentences]
        lstm = self.engine.network.config.lstm
        leading = (lstm.num_layers + 1,) if self.layers == "all" else ()
        nothing = np.empty((*leading, 0, 2 * lstm.projection_dim), dtype=np.float32)
        # an empty sentence needs no computing
        results = [nothing] * len(buffer)
        filled = [i for i, words in enumerate(buffer) if words]
        lengths = [len(tokens.sentences[i]) for i in filled]
        for batch in batch_by_length(lengths, max_tokens=self.batch_tokens):
            state = None if start is None else start.repeated(len(batch))
            sentences = [tokens.sentences[filled[i]] for i in batch]
            out = self.engine.run(vectors, sentences, layers=self.layers, state=state)
            for i, array in zip(batch, out.vectors, strict=True):
                results[filled[i]] = array
        return results
