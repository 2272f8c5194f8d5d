"""Streams of sentences to streams of vectors: read ahead, batched by length, in bounded memory."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple, cast

import numpy as np

from elmokit.errors import check_choice
from elmokit.inference.contexts import DistinctTokens, batch_by_length, fill_buffers
from elmokit.inference.engine import Engine
from elmokit.inference.layers_and_states import Layers, LSTMState

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


def stream_vectors(
    sentences: Iterable[list[str]], engine: Engine,
    encode: Callable[[list[list[str]]], tuple[np.ndarray, DistinctTokens]], *, layers: Layers,
    batch_tokens: int, start: LSTMState | None = None, carry: bool = False,
) -> Iterator[EmbeddedSentence]:  # fmt: skip
    """Turn sentences of words into vectors, in the same order.

    All start from one state (one row), or from zeros; with ``carry`` only the first does, and each
    of the others from the state after the previous one. ``encode`` is that of `FrozenBiLM`.
    """
    lstm = engine.config.lstm
    leading = (lstm.num_layers + 1,) if layers == "all" else ()
    nothing = np.empty((*leading, 0, 2 * lstm.projection_dim), dtype=np.float32)
    for buffer in fill_buffers(sentences, max_tokens=batch_tokens * BATCHES_PER_BUFFER):
        vectors, tokens = encode(buffer)
        if carry:
            for words, sentence in zip(buffer, tokens.sentences, strict=True):
                out = engine.run(vectors, [sentence], layers=layers, state=start)
                start = out.state
                yield EmbeddedSentence(words, out.vectors[0], start)
            continue
        results: dict[int, np.ndarray] = {}
        filled = [i for i, words in enumerate(buffer) if words]  # the others need no computing
        lengths = [len(tokens.sentences[i]) for i in filled]
        for batch in batch_by_length(lengths, max_tokens=batch_tokens):
            rows = [tokens.sentences[filled[i]] for i in batch]
            if layers == 0:
                # the token layer needs no LSTM, and has the same vector in both halves
                arrays = [np.tile(vectors[row[1:-1]], 2) for row in rows]
            else:
                state = None if start is None else start.repeated(len(batch))
                arrays = engine.run(vectors, rows, layers=layers, state=state).vectors
            results |= zip((filled[i] for i in batch), arrays, strict=True)
        for i, words in enumerate(buffer):
            yield EmbeddedSentence(words, results.pop(i, nothing), None)
