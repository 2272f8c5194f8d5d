"""What a task model reads at each word: static vector, characters, biLM layers, or any of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.nn.char_cnn import CharCNNConfig, CharTokenEncoder
from elmokit.nn.scalar_mix import ScalarMix
from elmokit.tasks.static_vectors import StaticVectors
from elmokit.text.char_vocab import CharVocab

Arm = Literal["elmo", "static", "layer0", "random", "top", "average", "none"]
"""What stands for a word beside its characters.

``elmo``: a learned mixture of all layers, beside the static vector where there is one. ``static``:
the static vector alone. ``layer0``, ``top``: one layer. ``average``: the plain mean of the layers.
``random``: as ``elmo``, from a biLM that was never trained. ``none``: nothing. Static vectors stand
beside the layers in every arm with a biLM, if there are any.
"""
WITH_LAYERS: tuple[Arm, ...] = ("elmo", "layer0", "random", "top", "average")
"""Arms that need a biLM."""

CHAR_FILTERS = ((3, 128),)
CHAR_EMBEDDING_DIM = 16


@dataclass(frozen=True, kw_only=True)
class InputsConfig:
    """Which representations a task model reads, and how."""

    embeddings: Arm = "elmo"
    """The arm."""
    characters: bool = True
    """A small character CNN of the task's own (16-d characters, 128 filters of width 3)."""
    dropout: float = 0.5
    """Share of each mixture's values dropped in training."""
    layer_l2: float = 1e-3
    """λ on the layer weights (elmo, random)."""

    def __post_init__(self) -> None:
        """Refuse what cannot be built."""
        if not 0 <= self.dropout < 1:
            raise ValueError("`dropout` must be at least 0 and below 1")
        if self.layer_l2 < 0:
            raise ValueError("`layer_l2` must not be negative")

    @property
    def has_layers(self) -> bool:
        """Whether a biLM is read."""
        return self.embeddings in WITH_LAYERS


@dataclass(frozen=True)
class TokenBatch:
    """Sentences of one batch, padded.

    Shapes: mask (B, W); layers (L, B, W, 2D), padded with zeros; word_index (B, W) into char_ids
    (U, C); static_ids (B, W).
    """

    mask: Tensor
    layers: Tensor | None
    char_ids: Tensor | None
    word_index: Tensor | None
    static_ids: Tensor | None


class BatchMaker:
    """Puts sentences together.

    Args:
        config: What is read.
        char_vocab: For the character CNN.
        static: Vectors by word, or none.
    """

    def __init__(
        self, config: InputsConfig, char_vocab: CharVocab, static: StaticVectors | None
    ) -> None:
        self.config, self.char_vocab, self.static = config, char_vocab, static

    def make(
        self, sentences: Sequence[Sequence[str]], layers: Sequence[np.ndarray] | None
    ) -> TokenBatch:
        """Return a batch of sentences with their layers, each (W, L, 2D), where these are read."""
        longest = max((len(words) for words in sentences), default=0)
        mask = torch.zeros(len(sentences), longest, dtype=torch.bool)
        for row, words in enumerate(sentences):
            mask[row, : len(words)] = True
        padded = None
        if layers is not None:
            num_layers, dim = layers[0].shape[1:]
            values = np.zeros((num_layers, len(sentences), longest, dim), dtype=np.float32)
            for row, one in enumerate(layers):
                values[:, row, : len(one)] = one.transpose(1, 0, 2)
            padded = torch.from_numpy(values)
        char_ids = index = static_ids = None
        if self.config.characters:
            distinct = {word: number for number, word in enumerate(_distinct(sentences))}
            index = _ids(sentences, longest, distinct)
            rows = self.char_vocab.encode_words(list(distinct)) if distinct else None
            if rows is not None:
                char_ids = torch.from_numpy(rows.astype(np.int64))
        if self.static is not None:
            ids = {word: self.static.id_of(word) for word in _distinct(sentences)}
            static_ids = _ids(sentences, longest, ids)
        return TokenBatch(mask, padded, char_ids, index, static_ids)


def _distinct(sentences: Sequence[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(word for words in sentences for word in words))


def _ids(sentences: Sequence[Sequence[str]], longest: int, ids: dict[str, int]) -> Tensor:
    result = torch.zeros(len(sentences), longest, dtype=torch.int64)
    for row, words in enumerate(sentences):
        result[row, : len(words)] = torch.tensor([ids[word] for word in words], dtype=torch.int64)
    return result


class TokenInputs(nn.Module):
    """Static vector, character CNN and mixture of layers of each word, side by side.

    Args:
        config: What is read.
        num_layers: L of the biLM; 0 without one.
        layers_dim: 2D of the biLM.
        max_characters: C of the character rows.
        static: Vectors by word, kept as they are; or none.
        num_mixes: Places of use of the biLM: 1 input only, 2 input and output.

    Shape: `TokenBatch` -> (B, W, X), 0 at padded positions.
    Source: Peters et al. 2018, section 3.3: [x; ELMo].

    Raises:
        ValueError: if nothing would be read.
    """

    def __init__(
        self,
        config: InputsConfig,
        *,
        num_layers: int,
        layers_dim: int,
        max_characters: int,
        static: StaticVectors | None,
        num_mixes: int = 1,
    ) -> None:
        super().__init__()
        self.config = config
        self.characters = self.static = None
        self.output_dim = 0
        if static is not None:
            self.set_static(static)
            self.output_dim += static.dim
        if config.characters:
            char_config = CharCNNConfig(
                embedding_dim=CHAR_EMBEDDING_DIM, filters=CHAR_FILTERS, num_highway=0
            )
            self.characters = CharTokenEncoder(
                char_config, output_dim=char_config.num_filters, max_characters=max_characters
            )
            self.output_dim += char_config.num_filters
        count = {"layer0": 1, "top": 1}.get(config.embeddings, num_layers)
        self.mixes = nn.ModuleList(
            ScalarMix(count, trainable=config.embeddings in ("elmo", "random"))
            for _ in range(num_mixes if config.has_layers else 0)
        )
        self.mix_dim = layers_dim if config.has_layers else 0
        self.output_dim += self.mix_dim
        if not self.output_dim:
            raise ValueError(
                f"embeddings={config.embeddings!r} leaves a word nothing to be read: give static "
                "vectors, characters or a biLM."
            )

    def set_static(self, static: StaticVectors) -> None:
        """Read these static vectors, which may have more words than those before."""
        self.static = nn.Embedding.from_pretrained(
            torch.from_numpy(static.values), freeze=True, padding_idx=0
        )

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh weights."""
        if self.characters is not None:
            self.characters.reset_parameters(generator)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Return what stands for each word at the input of the task model."""
        parts = []
        if self.static is not None:
            assert batch.static_ids is not None
            parts.append(self.static(batch.static_ids))
        if self.characters is not None and batch.char_ids is not None:
            assert batch.word_index is not None
            parts.append(self.characters(batch.char_ids)[batch.word_index])
        elif self.characters is not None:  # a batch without words
            width = self.characters.config.num_filters
            parts.append(torch.zeros(*batch.mask.shape, width))
        if self.mixes:
            parts.append(self.mix(batch, 0))
        return torch.cat(parts, dim=2) * batch.mask.unsqueeze(2)

    def mix(self, batch: TokenBatch, place: int) -> Tensor:
        """Return the mixture for one place of use, with dropout: (B, W, 2D)."""
        layers = batch.layers
        assert layers is not None
        layers = {"layer0": layers[:1], "top": layers[-1:]}.get(self.config.embeddings, layers)
        mixed = self.mixes[place](layers, batch.mask)
        return functional.dropout(mixed, self.config.dropout, self.training)

    def penalty(self) -> Tensor:
        """Return λ Σ w² over all mixtures, for the task's loss."""
        total = torch.zeros(())
        for mix in self.mixes:
            assert isinstance(mix, ScalarMix)
            if mix.mix_weights.requires_grad:
                total = total + mix.penalty()
        return self.config.layer_l2 * total
