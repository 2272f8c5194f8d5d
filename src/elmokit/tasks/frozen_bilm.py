"""What a task takes from a frozen biLM: layers, tokenizer, character rows."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from elmokit.embed.embedder import Embedder
from elmokit.errors import at_the_door
from elmokit.tasks.inputs import InputsConfig
from elmokit.tasks.layer_cache import Sentence, SentenceLayers, keep_layers
from elmokit.text.char_vocab import CharVocab
from elmokit.text.tokenizers import build_tokenizer
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import load_model

log = logging.getLogger(__name__)

RANDOM_SEED = 0
"""Of the biLM that was never trained."""
OnLayers = Callable[[int, int], None]
"""Called with sentences done and their number."""


@dataclass(frozen=True, kw_only=True)
class BiLMReference:
    """The biLM that a task model reads."""

    path: str
    """Its model directory."""
    model_hash: str
    """Of the weights that were read."""
    precision: str = "fp32"
    """Arithmetic of its layers."""


class FrozenBiLM:
    """A biLM as a task sees it; arms without layers have its tokenizer alone, or a plain one.

    Use `FrozenBiLM.open`.
    """

    def __init__(
        self,
        embedder: Embedder | None,
        tokenize: Callable[[str], list[str]],
        char_vocab: CharVocab,
        reference: BiLMReference | None,
        cache_dir: Path | None,
        on_layers: OnLayers | None,
    ) -> None:
        self._embedder, self.tokenize, self.char_vocab = embedder, tokenize, char_vocab
        self.reference, self._cache_dir, self._on_layers = reference, cache_dir, on_layers
        self.num_layers = 0 if embedder is None else embedder.num_layers
        self.dim = 0 if embedder is None else embedder.dim

    @classmethod
    def open(
        cls,
        inputs: InputsConfig,
        model: str | None,
        *,
        precision: str = "fp32",
        cache_dir: Path | None = None,
        on_layers: OnLayers | None = None,
    ) -> "FrozenBiLM":
        """Load what the arm needs.

        Args:
            inputs: With the arm.
            model: Model directory; arms without layers do without one.
            precision: Of the layers.
            cache_dir: Where layers are kept.
            on_layers: Called while layers are computed.

        Raises:
            FileNotFoundError: if there is no such model, or none is named where one is needed.
            FormatError: if it is damaged.
            ValueError: for a precision that does not exist.
        """
        if not inputs.has_layers:
            if precision != "fp32":
                log.warning(
                    "precision %s has no effect: embeddings=%s reads no biLM",
                    precision, inputs.embeddings,
                )  # fmt: skip
            if model is None:
                tokenizer = build_tokenizer("simple")
                return cls(None, tokenizer.tokenize, CharVocab(), None, cache_dir, on_layers)
        path = find_model(model)
        loaded = load_model(path)
        embedder = None
        if inputs.embeddings == "random":
            loaded.reset_parameters(torch.Generator().manual_seed(RANDOM_SEED))
        if inputs.has_layers:
            with at_the_door():  # the precision is checked there
                embedder = Embedder.load(loaded, precision=precision)
        reference = BiLMReference(
            path=str(path.absolute()), model_hash=loaded.model_hash(), precision=precision
        )
        tokenize = build_tokenizer(loaded.tokenizer).tokenize
        return cls(embedder, tokenize, loaded.char_vocab, reference, cache_dir, on_layers)

    @property
    def keep(self) -> Callable[[list[Sentence]], SentenceLayers] | None:
        """What returns kept layers of sentences; none if no biLM is read."""
        if self._embedder is None:
            return None
        embedder = self._embedder

        def keep(sentences: list[Sentence]) -> SentenceLayers:
            return keep_layers(embedder, sentences, self._cache_dir, on_progress=self._on_layers)

        return keep

    @property
    def compute(self) -> Callable[[list[Sentence]], Sequence[np.ndarray]] | None:
        """The same for a few sentences, whose layers nobody will ask for again."""
        if self._embedder is None:
            return None
        embedder = self._embedder
        return lambda sentences: [
            vectors.transpose(1, 0, 2) for vectors in embedder.embed([list(s) for s in sentences])
        ]
