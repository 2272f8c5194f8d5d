"""A biLM that does not learn: words to token vectors of the distinct words, then the engine.

`PackedWeights` is for layers whose weights may change between calls.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from elmokit.bilm.bilm import BiLM, BiLMOutput, BiLMState
from elmokit.bilm.masking import lengths_of, mask_of
from elmokit.inference.backend import Precision
from elmokit.inference.batching import DistinctTokens, find_distinct_tokens
from elmokit.inference.divergence import DivergenceCheck
from elmokit.inference.engine import Engine
from elmokit.inference.precision import build_network
from elmokit.inference.word_cache import WordCache
from elmokit.kernels.buffers import fp32_zeros
from elmokit.kernels.inference import load_kernels
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
        device = next(model.parameters()).device if device is None else device
        self.network = build_network(model, precision=precision, device=device)
        self.engine = Engine(self.network)
        self._divergence = DivergenceCheck(self.engine)
        # what reads ids is kept instead of `model`, so that a character model can be freed
        tables = (m for m in model.token_encoder.modules() if isinstance(m, nn.Embedding))
        self._num_ids = tuple(table.num_embeddings for table in tables)
        self._cache: WordCache | None = None
        if model.config.char_cnn is None:
            self._ids_of = lambda words: cast(PretrainedBiLM, model).encode_words(words).numpy()
            self._ids_dtype: type[np.integer] = np.int64
            return
        self._ids_of, self._ids_dtype = model.char_vocab.encode_words, model.char_vocab.dtype
        if word_cache and device.type == "cpu":
            self._cache = WordCache(model.config.lstm.projection_dim)

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

        ``ids`` are on the CPU and fit the model (`BiLM.check_inputs`); they have boundaries, and
        padding only at the end.
        """
        mask = mask_of(ids)
        lengths = lengths_of(mask).tolist()
        real = ids[mask].numpy()
        _check_ids(real, self._num_ids)
        real = real.astype(self._ids_dtype)
        # a row's bytes stand for its word, here and in the cache
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
    """Check the ids of tokens, (U, C) or (U,): the kernels would read beyond their tables.

    With several kinds of ids, the last is in the last column.
    """
    parts = (rows[..., :-1], rows[..., -1]) if len(num_ids) > 1 else (rows,)
    for part, count in zip(parts, num_ids, strict=True):
        if part.size and not 0 <= part.min() <= part.max() < count:
            wrong = part.min() if part.min() < 0 else part.max()
            raise ValueError(f"Ids must be 0 to {count - 1}, got {wrong}.")


class PackedWeights:
    """Keeps a biLM's weights packed for the kernels, and packs them again after a change.

    A change through ``weight.data`` or NumPy, which PyTorch does not count, is noticed if it
    reaches a whole tensor. Copies and pickles hold no weights; they pack their own.
    """

    def __init__(self) -> None:
        self._packed: tuple[FrozenBiLM, object] | None = None

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return PackedWeights, ()

    def of(self, bilm: BiLM) -> FrozenBiLM | None:
        """Return the biLM with packed weights; none where it must run as plain modules.

        Other devices and types of numbers, graphs that are being compiled or traced, and modules
        with forward hooks run as they are.
        """
        if torch.compiler.is_compiling() or torch.jit.is_tracing():  # pyright: ignore[reportPrivateImportUsage]
            return None
        modules = list(bilm.modules())
        weights = [w for module in modules for w in module._parameters.values() if w is not None]
        is_plain = all(w.is_cpu and w.dtype == torch.float32 for w in weights) and not any(
            module._forward_hooks or module._forward_pre_hooks for module in modules
        )
        if not is_plain or load_kernels() is None:  # which says so
            return None
        # PyTorch counts changes in place; the sample finds those made around it
        version = [
            (w.data_ptr(), 0 if w.is_inference() else w._version, _sample(w)) for w in weights
        ]
        if self._packed is None or self._packed[1] != version:
            self._packed = FrozenBiLM(bilm, word_cache=True), version
        return self._packed[0]


def _sample(weight: Tensor) -> bytes:
    """Return some 64 values from all over a tensor; the odd step leaves no columns aside."""
    return weight.detach().numpy().flat[:: weight.numel() // 64 | 1].tobytes()
