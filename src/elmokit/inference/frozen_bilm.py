"""A biLM that does not learn: words to token vectors of the distinct words, then the engine."""

from collections.abc import Callable, Hashable, Sequence
from typing import cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from elmokit.bilm.bilm import (
    BiLM,
    BiLMOutput,
    BiLMState,
    check_ids_shape,
    check_state_rows,
)
from elmokit.bilm.masking import lengths_of, mask_of
from elmokit.inference.backend import Precision
from elmokit.inference.distinct_words import DistinctTokens, find_distinct_tokens
from elmokit.inference.divergence import DivergenceCheck
from elmokit.inference.engine import Engine
from elmokit.inference.precision import build_network
from elmokit.inference.word_cache import WordCache
from elmokit.kernels.buffers import fp32_zeros
from elmokit.weights.model_dir import PretrainedBiLM


class FrozenBiLM:
    """Everything that runs a frozen biLM on words goes through here.

    Later changes to the weights of ``model`` have no effect; its device is the default.
    ``word_cache`` keeps token vectors between calls (64 MB at most; CPU, character input).
    """

    def __init__(
        self,
        model: BiLM,
        *,
        device: torch.device | None = None,
        precision: Precision = "fp32",
        word_cache: bool = False,
    ) -> None:
        chosen = next(model.parameters()).device if device is None else device
        self.network = build_network(model, precision=precision, device=chosen)
        self.engine = Engine(self.network)
        self._divergence = DivergenceCheck(self.engine)
        self._by_characters = model.config.char_cnn is not None
        vocab = model.char_vocab  # not `model`, so that a character model can be freed
        self._ids_of = (
            vocab.encode_words
            if self._by_characters
            else lambda words: cast(PretrainedBiLM, model).encode_words(words).numpy()
        )
        self._row_length = vocab.row_length if self._by_characters else None
        self._num_ids = model.num_input_ids
        self._ids_dtype = vocab.dtype if self._by_characters else np.int64
        keep = word_cache and self._by_characters and chosen.type == "cpu"
        self._cache = WordCache(model.config.lstm.projection_dim) if keep else None

    def encode(
        self, sentences: Sequence[Sequence[str]]
    ) -> tuple[Float[Tensor, "U D"], DistinctTokens]:
        """Return the token vectors of the distinct words, and the sentences as rows of these."""
        tokens = find_distinct_tokens(sentences)
        words = tokens.words
        vectors = self._token_vectors(words, lambda rows: self._ids_of([words[i] for i in rows]))
        self._divergence.check(vectors, tokens.sentences)
        return vectors, tokens

    def run(
        self, ids: Int[Tensor, "B T C"] | Int[Tensor, "B T"], *, state: BiLMState | None = None
    ) -> BiLMOutput:
        """Return what `BiLM.forward` returns, without gradients.

        ``ids`` are on the CPU; they have boundaries, and padding only at the end.

        Raises:
            ValueError: for ids of another shape or outside the model's, padding that is not at the
                end, or a state with fewer rows.
        """
        check_ids_shape(ids, row_length=self._row_length)
        check_state_rows(state, len(ids))
        mask = mask_of(ids)
        lengths = lengths_of(mask).tolist()
        real = ids[mask].numpy()
        _check_ids(real, self._num_ids)
        real = real.astype(self._ids_dtype)
        rows: dict[Hashable, int] = {}
        index = np.array([rows.setdefault(row.tobytes(), len(rows)) for row in real], dtype=np.intp)
        distinct = real[np.unique(index, return_index=True)[1]]
        vectors = self._token_vectors(list(rows), lambda missing: distinct[missing])
        sentences = np.split(index, np.cumsum(lengths))[:-1]  # none for no rows
        self._divergence.check(vectors, sentences)
        out = self.engine.run(vectors, sentences, state=state, boundaries=True)
        lstm, num_rows = self.network.config.lstm, len(ids)
        layers = fp32_zeros(lstm.num_layers + 1, *mask.shape, 2 * lstm.projection_dim)
        for row, array in enumerate(out.vectors):
            layers[:, row, : array.shape[1]] = torch.from_numpy(array)
        after = out.state.rows(slice(0, num_rows))
        return BiLMOutput(layers, mask, BiLMState(after.hidden.clone(), after.cell.clone()))

    def _token_vectors(
        self, tokens: Sequence[Hashable], ids_of: Callable[[np.ndarray], np.ndarray]
    ) -> Float[Tensor, "U D"]:
        """Return the vectors of distinct tokens; ``ids_of`` gives the ids of those at positions."""
        if self._cache is None:
            return self.engine.encode_tokens(ids_of(np.arange(len(tokens))))
        vectors, missing = self._cache.read(tokens)
        if len(missing):
            new_vectors = self.engine.encode_tokens(ids_of(missing))
            vectors.numpy()[missing] = new_vectors.numpy()
            self._cache.write([tokens[i] for i in missing], new_vectors)
        return vectors


def _check_ids(rows: np.ndarray, num_ids: tuple[int, ...]) -> None:
    """Check the ids of tokens, (U, C) or (U,); of several kinds, the last is the last column.

    Raises:
        ValueError: for an id that the token encoder does not know.
    """
    parts = (rows[..., :-1], rows[..., -1]) if len(num_ids) > 1 else (rows,)
    for part, count in zip(parts, num_ids, strict=True):
        if part.size and not 0 <= part.min() <= part.max() < count:
            wrong = part.min() if part.min() < 0 else part.max()
            raise ValueError(f"Ids must be 0 to {count - 1}, got {wrong}.")
