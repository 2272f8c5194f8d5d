"""A biLM that does not learn: words to token vectors, then the engine; its warm start state."""

import logging
import threading
from collections.abc import Callable, Hashable, Sequence
from importlib.resources import files
from typing import get_args

import numpy as np

from elmokit.bilm.config import Direction
from elmokit.files.sources import text_sha256
from elmokit.inference.contexts import DistinctTokens, find_distinct_tokens
from elmokit.inference.device import Precision, build_engine
from elmokit.inference.engine import Engine, EngineOutput
from elmokit.inference.layers_and_states import DirectionState, LSTMState
from elmokit.shapes import Float, Integer
from elmokit.weights.stored_bilm import LoadedBiLM

log = logging.getLogger(__name__)

DEFAULT_BYTES = 64 * 2**20
"""Memory: 28,000 words of the original model, 61,000 of the small one."""
ENTRY_BYTES = 320
"""Memory for a word and its place in the dictionary (measured), besides its vector."""
MAX_CACHED_CHARACTERS = 256
"""Longer words are not kept: they hardly ever come again, and may have megabytes."""
NUM_STREAMS = 8
"""Parallel streams in which the warm text is read."""


class WordCache:
    """Vectors (D,) of the most recently used words, for one set of weights and one precision."""

    def __init__(self, dim: int, *, max_bytes: int = DEFAULT_BYTES) -> None:
        self._dim, self._capacity = dim, max_bytes // (4 * dim + ENTRY_BYTES)
        # in the order of their last use
        self._vectors: dict[Hashable, np.ndarray] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._vectors)

    def read(
        self, words: Sequence[Hashable]
    ) -> tuple[Float[np.ndarray, "U D"], Integer[np.ndarray, " M"]]:
        """Return the vectors of distinct words (or their ids), and the positions still to fill."""
        vectors = np.empty((len(words), self._dim), dtype=np.float32)
        missing: list[int] = []
        with self._lock:
            for i, word in enumerate(words):
                vector = self._vectors.pop(word, None)
                if vector is None:
                    missing.append(i)
                else:
                    vectors[i] = self._vectors[word] = vector
        return vectors, np.array(missing, dtype=np.int64)

    def write(self, words: Sequence[Hashable], vectors: Float[np.ndarray, "U D"]) -> None:
        """Keep the vectors of distinct words, as many as fit, but for very long ones."""
        words, vectors = words[-self._capacity :], vectors[-self._capacity :]
        with self._lock:
            for word, vector in zip(words, vectors, strict=True):
                if not isinstance(word, str) or len(word) <= MAX_CACHED_CHARACTERS:
                    self._vectors[word] = vector.copy()
            while len(self._vectors) > self._capacity:
                del self._vectors[next(iter(self._vectors))]


class FrozenBiLM:
    """Everything that runs a frozen biLM on words goes through here.

    Later changes to the weights of ``model`` have no effect; its device is the default.
    ``word_cache`` keeps token vectors between calls (64 MB at most; CPU, character input).
    """

    def __init__(
        self,
        model: LoadedBiLM,
        *,
        device: str | None = None,
        precision: Precision = "fp32",
        word_cache: bool = False,
    ) -> None:
        stored = model.stored()
        device = stored.device if device is None else device
        arrays = stored.arrays()
        self.engine = build_engine(stored.config, arrays, precision=precision, device=device)
        self._num_ids = tuple(
            len(arrays[name]) for name in arrays if name.endswith("embedding.weight")
        )
        self._cache: WordCache | None = None
        if stored.config.char_cnn is None:
            self._ids_of: Callable[[Sequence[str]], np.ndarray] = stored.ids_of_words
            self._ids_dtype: type[np.integer] = np.int64
            return
        # what reads ids is kept instead of the model, so that its arrays can be freed
        self._ids_of, self._ids_dtype = stored.char_vocab.encode_words, stored.char_vocab.dtype
        if word_cache and self.engine.device == "cpu":
            self._cache = WordCache(stored.config.lstm.projection_dim)

    def encode(
        self, sentences: Sequence[Sequence[str]]
    ) -> tuple[Float[np.ndarray, "U D"], DistinctTokens]:
        """Return the token vectors of the distinct words, and the sentences as rows of these."""
        tokens = find_distinct_tokens(sentences)
        words = tokens.words
        vectors = self._token_vectors(words, lambda rows: self._ids_of([words[i] for i in rows]))
        return vectors, tokens

    def run_ids(
        self, real: Integer[np.ndarray, "P ..."], lengths: Sequence[int], state: LSTMState | None
    ) -> EngineOutput:
        """Run sentences given as the ids of all their tokens, boundaries included, on end."""
        # the kernels would read beyond their tables
        _check_ids(real, self._num_ids)
        real = real.astype(self._ids_dtype)
        # a row's bytes stand for its word, here and in the cache
        rows: dict[Hashable, int] = {}
        index = np.array([rows.setdefault(row.tobytes(), len(rows)) for row in real], dtype=np.intp)
        distinct = real[np.unique(index, return_index=True)[1]]
        vectors = self._token_vectors(list(rows), lambda missing: distinct[missing])
        sentences = np.split(index, np.cumsum(lengths))[:-1]  # none for no rows
        return self.engine.run(vectors, sentences, state=state, boundaries=True)

    def _token_vectors(
        self, tokens: Sequence[Hashable], ids_of: Callable[[np.ndarray], np.ndarray]
    ) -> Float[np.ndarray, "U D"]:
        """Return the vectors of distinct tokens; ``ids_of`` gives the ids of those at positions."""
        if self._cache is None:
            return self.engine.encode_tokens(ids_of(np.arange(len(tokens))))
        vectors, missing = self._cache.read(tokens)
        if len(missing):
            vectors[missing] = self.engine.encode_tokens(ids_of(missing))
            self._cache.write([tokens[i] for i in missing], vectors[missing])
        return vectors


def compute_layers(
    model: LoadedBiLM, ids: Integer[np.ndarray, "B T C"] | Integer[np.ndarray, "B T"]
) -> Float[np.ndarray, "L N E2"]:
    """Return the layers at the N real tokens of sentences given as ids, boundaries included."""
    is_real = ids.any(axis=2) if ids.ndim == 3 else ids > 0  # (B, T)
    output = FrozenBiLM(model).run_ids(ids[is_real], is_real.sum(axis=1).tolist(), None)
    return np.concatenate(output.vectors, axis=1)


def _check_ids(rows: np.ndarray, num_ids: tuple[int, ...]) -> None:
    """Check the ids of tokens, (U, C) or (U,): the kernels would read beyond their tables.

    With several kinds of ids, the last is in the last column.
    """
    parts = (rows[..., :-1], rows[..., -1]) if len(num_ids) > 1 else (rows,)
    for part, count in zip(parts, num_ids, strict=True):
        if part.size and not 0 <= part.min() <= part.max() < count:
            wrong = part.min() if part.min() < 0 else part.max()
            raise ValueError(f"Ids must be 0 to {count - 1}, got {wrong}.")


def warm_text(stored: tuple[str, ...]) -> tuple[str, ...]:
    """Return the neutral sentences stored with a model, or the package's own if there are none."""
    if stored:
        return stored
    log.warning("the model stores no neutral text to warm up with; using the package's own")
    text = files("elmokit").joinpath("data/warm.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line)


def warm_metadata(text: Sequence[str]) -> dict[str, str]:
    """Return what names the warm state after these sentences in the metadata of a result."""
    return {"warm_text_sha256": text_sha256("\n".join(text))}


def warm_state(bilm: FrozenBiLM, text: Sequence[str]) -> LSTMState:
    """Return the average state (one row) after the sentences of ``text``, words joined by spaces.

    The text is read as in training (a direction never reads its own end marker), in streams that
    carry their state; the first sentence of each stream is left out of the average.
    """
    vectors, tokens = bilm.encode([line.split() for line in text])
    # round r: sentences r * NUM_STREAMS, …, one for each stream; too few are read again
    sentences = tokens.sentences
    rounds = [
        sentences[k : k + NUM_STREAMS]
        for k in range(0, len(sentences) - NUM_STREAMS + 1, NUM_STREAMS)
    ] or [[sentences[k % len(sentences)] for k in range(NUM_STREAMS)]]
    state = LSTMState.zeros(bilm.engine.config.lstm, NUM_STREAMS)
    averages = (
        _average(bilm.engine, direction, vectors, rounds, state.direction(direction))
        for direction in get_args(Direction)
    )
    return LSTMState.from_directions(*averages)


def _average(
    engine: Engine,
    direction: Direction,
    vectors: np.ndarray,
    rounds: list[list[np.ndarray]],
    state: DirectionState,
) -> DirectionState:
    states = []
    for sentences in rounds:
        inputs = [inputs_of(direction, sentence) for sentence in sentences]
        state = engine.read(direction, vectors, inputs, state)
        states.append(state)
    # the first sentences began at zero, which is what the warm state avoids
    hiddens, cells = zip(*(states[1:] or states), strict=True)
    return _mean_of_streams(hiddens), _mean_of_streams(cells)


def _mean_of_streams(parts: Sequence[np.ndarray]) -> Float[np.ndarray, "N 1 X"]:
    """Return the mean over rounds and streams of (N, streams, X).

    It adds in the order of PyTorch, which made the warm vectors that people have stored: another
    order would change their last bits.
    """
    total = np.zeros_like(parts[0][:, 0])
    for part in parts:
        quarters = part[:, : NUM_STREAMS // 2] + part[:, NUM_STREAMS // 2 :]
        sums = quarters[:, 0]
        for number in range(1, NUM_STREAMS // 2):
            sums = sums + quarters[:, number]
        total = total + sums
    return (total / np.float32(len(parts) * NUM_STREAMS))[:, None]


def inputs_of(direction: Direction, sentence: np.ndarray) -> np.ndarray:
    """Return what a direction reads of a sentence: all but the boundary at its end."""
    return sentence[:-1] if direction == "forward" else sentence[1:]
