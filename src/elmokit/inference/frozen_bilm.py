"""A biLM that does not learn: words to token vectors of the distinct words, then the engine."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from elmokit.inference.backend import Precision
from elmokit.inference.distinct_words import DistinctTokens, find_distinct_tokens
from elmokit.inference.engine import Engine
from elmokit.inference.precision import build_network
from elmokit.inference.word_cache import WordCache
from elmokit.weights.model_dir import PretrainedBiLM


class FrozenBiLM:
    """Everything that runs a frozen biLM on words goes through here.

    Later changes to the weights of ``model`` may have no effect; its device is the default.
    ``word_cache`` keeps token vectors between calls (64 MB at most; CPU, character input).
    """

    def __init__(
        self,
        model: PretrainedBiLM,
        *,
        device: torch.device | None = None,
        precision: Precision = "fp32",
        word_cache: bool = False,
    ) -> None:
        chosen = next(model.parameters()).device if device is None else device
        self.network = build_network(model, precision=precision, device=chosen)
        self.engine = Engine(self.network)
        by_characters = model.config.char_cnn is not None
        vocab = model.char_vocab  # not `model`, so that a character model can be freed
        self._ids_of = (
            vocab.encode_words if by_characters else lambda words: model.encode_words(words).numpy()
        )
        keep = word_cache and by_characters and chosen.type == "cpu"
        self._cache = WordCache(model.config.lstm.projection_dim) if keep else None

    def encode(
        self, sentences: Sequence[Sequence[str]]
    ) -> tuple[Float[Tensor, "U D"], DistinctTokens]:
        """Return the token vectors of the distinct words, and the sentences as rows of these."""
        tokens = find_distinct_tokens(sentences)
        words = tokens.words
        if self._cache is None:
            return self.engine.encode_tokens(self._ids_of(words)), tokens
        vectors, missing = self._cache.read(words)
        if len(missing):
            new_words = [words[i] for i in missing]
            new_vectors = self.engine.encode_tokens(self._ids_of(new_words))
            vectors.numpy()[missing] = new_vectors.numpy()
            self._cache.write(new_words, new_vectors)
        return vectors, tokens
