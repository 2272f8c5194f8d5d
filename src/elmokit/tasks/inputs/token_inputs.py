"""What a task model reads at each word: any of static vector, characters and biLM layers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.char_cnn import CharTokenEncoder
from elmokit.bilm.scalar_mix import LayerMixes
from elmokit.shapes import Float, Int
from elmokit.tasks.inputs.settings import CHARACTER_CNN, InputSettings, MixPosition
from elmokit.text.char_vocab import CharVocab
from elmokit.vectors.static_vectors import StaticVectors

GROUP_SIZE = 256  # words of similar length whose characters are convolved together
ROW_BLOCKS = (8, 32, GROUP_SIZE)
"""The number of words is rounded up to a multiple of the first that is at least 1/8 of it."""
COLUMN_BLOCK = 8  # the characters of a group are rounded up to a multiple of this
START_RMS = 0.25
"""Root mean square, before training, of a mixture's values and of static vectors whose scale is
learned: about that of skip-gram vectors."""


@dataclass(frozen=True)
class TokenBatch:
    """Sentences of one batch, padded.

    Shapes: mask (B, W); layers (L, B, W, 2D), padded with zeros; word_index (B, W) into char_ids
    (U, C); static_ids (B, W).
    """

    mask: Tensor
    layers: Tensor | None = None
    char_ids: Tensor | None = None
    word_index: Tensor | None = None
    static_ids: Tensor | None = None

    def to(self, device: torch.device) -> "TokenBatch":
        others = (self.layers, self.char_ids, self.word_index, self.static_ids)
        moved = (None if part is None else part.to(device) for part in others)
        return TokenBatch(self.mask.to(device), *moved)


def _ids(sentences: Sequence[Sequence[str]], longest: int, ids: dict[str, int]) -> Tensor:
    """Return the ids of words, (B, longest), 0 at padded positions."""
    result = np.zeros((len(sentences), longest), dtype=np.int64)
    for row, words in enumerate(sentences):
        result[row, : len(words)] = [ids[word] for word in words]
    return torch.from_numpy(result)


def _encode_characters(encoder: CharTokenEncoder, char_ids: Tensor) -> Tensor:
    """Encode words, (U, C) -> (U, F), of many words those of similar length together."""
    # Rows and columns come in blocks: products of a few fixed shapes give a word the same numbers
    # in any batch. Of the windows of padding, which are all alike, one is enough.
    num_words, length = char_ids.shape
    block = next(b for b in ROW_BLOCKS if num_words <= 8 * b or b == GROUP_SIZE)
    rows = functional.pad(char_ids, (0, 0, 0, -num_words % block))
    if num_words <= GROUP_SIZE:
        return encoder.finish(_pool(encoder, rows)[:num_words], char_ids)
    is_real = (rows != encoder.padding_id) & (rows != 0)
    order = is_real.sum(dim=1).argsort(stable=True)
    pooled = []
    for group, real in zip(
        rows[order].split(GROUP_SIZE), is_real[order].split(GROUP_SIZE), strict=True
    ):
        needed = int(real.any(dim=0).sum()) + max(width for width, _ in CHARACTER_CNN.filters)
        pooled.append(_pool(encoder, group[:, : min(length, needed + -needed % COLUMN_BLOCK)]))
    return encoder.finish(torch.cat(pooled)[order.argsort()[:num_words]], char_ids)


def _pool(encoder: CharTokenEncoder, char_ids: Tensor) -> Tensor:
    """Return each filter's maximum over positions: (U, C) -> (U, F)."""
    return torch.cat([x.max(dim=1).values for x in encoder.responses(char_ids)], dim=-1)


class StaticInputs(nn.Module):
    """Vectors by word, which are not trained: ids (B, W) -> (B, W, S).

    With ``static_scale="learned"``, each place where they are read has a learned scale γ. In the
    condition ``static_output`` that is also the output of the first encoder. In
    ``static_projected`` a learned linear map of the vectors, to ``layers_dim`` (2D), stands
    wherever ELMo would be read, so that the network is as wide as with ELMo.
    """

    def __init__(self, vectors: StaticVectors, settings: InputSettings, layers_dim: int) -> None:
        super().__init__()
        self.set_vectors(vectors)
        self.gammas = self.projections = None
        self.mix_dim = 0  # width of what `mix` returns
        positions = settings.mix_positions if settings.sources.needs_static else ()
        if settings.static_scale == "learned":
            num_places = 1 + (settings.embeddings == "static_output")
            self.gammas = nn.Parameter(torch.ones(num_places))
        if settings.embeddings == "static_projected":
            self.projections = nn.ModuleList(
                nn.Linear(self.dim, layers_dim, bias=False) for _ in positions
            )
        if positions:
            self.mix_dim = self.dim if self.projections is None else layers_dim
        self.dropout = nn.Dropout(settings.dropout or 0.0)

    @property
    def dim(self) -> int:
        return self.weight.shape[1]  # S

    def set_vectors(self, vectors: StaticVectors) -> None:
        values = torch.from_numpy(vectors.values)
        if "weight" in self._parameters:
            values = values.to(self.weight.device)
        self.weight = nn.Parameter(values, requires_grad=False)

    def reset_parameters(self, generator: torch.Generator) -> None:
        for projection in self.projections or ():
            weight = projection.get_parameter("weight")
            nn.init.normal_(weight, std=self.dim**-0.5, generator=generator)

    def forward(self, ids: Int[Tensor, "B W"], *, place: int = 0) -> Float[Tensor, "B W S"]:
        vectors = functional.embedding(ids, self.weight)
        return vectors if self.gammas is None else self.gammas[place] * vectors

    def mix(self, index: int, ids: Int[Tensor, "B W"]) -> Float[Tensor, "B W X"]:
        """Return what stands in the place of mixture number ``index``, with dropout."""
        if self.projections is None:
            return self.dropout(self(ids, place=1))
        return self.dropout(self.projections[index](self(ids)))

    @torch.no_grad()
    def scale_to(self, rms: float, samples: Sequence[Tensor]) -> None:
        """Set every γ so that the vectors of the words in ``samples`` (ids) have this size."""
        if self.gammas is None or not samples:
            return
        vectors = self.weight[torch.cat([ids.flatten() for ids in samples])]
        own_rms = vectors[vectors.any(dim=1)].square().mean().sqrt()
        if own_rms > 0:  # not NaN, which is the mean of nothing
            self.gammas.fill_(rms / own_rms)


class TokenInputs(nn.Module):
    """Static vector, character CNN and mixture of layers of each word, side by side.

    ``mixes`` has one mixture for each of `InputSettings.mix_positions`, unless static vectors are
    in their place. ``settings`` are complete; ``num_layers`` is L, 0 without a biLM, ``layers_dim``
    2D.

    Shape: `TokenBatch` -> (B, W, X), 0 at padded positions.
    Source: Peters et al. 2018, section 3.3: [x; ELMo].
    """

    def __init__(
        self,
        settings: InputSettings,
        char_vocab: CharVocab,
        *,
        num_layers: int,
        layers_dim: int,
        static: StaticVectors | None,
    ) -> None:
        super().__init__()
        self.settings, self.char_vocab, self.vectors = settings, char_vocab, static
        self.characters = self.static = self.mixes = None
        self.output_dim = 0
        if static is not None:
            self.static = StaticInputs(static, settings, layers_dim)
            self.output_dim += static.dim
        if settings.characters:
            width = CHARACTER_CNN.num_filters
            self.characters = CharTokenEncoder(
                CHARACTER_CNN, output_dim=width, max_characters=char_vocab.config.max_characters
            )
            self.output_dim += width
        positions = settings.mix_positions
        mix_dim = 0 if self.static is None else self.static.mix_dim
        layers = settings.sources.layers
        if positions and layers is not None:
            dropout, l2, norm = settings.dropout, settings.layer_l2, settings.layer_norm
            assert dropout is not None and l2 is not None and norm is not None  # noqa: PT018
            self.mixes = LayerMixes(
                num_layers, num_mixes=len(positions), layers=layers,
                dropout=dropout, layer_norm=norm, l2=l2,
            )  # fmt: skip
            mix_dim = layers_dim
        self.output_mix_dim = mix_dim if "output" in positions else 0
        self.output_dim += mix_dim if "input" in positions else 0
        if not self.output_dim:
            raise ValueError(
                f"embeddings={settings.embeddings!r}, positions={settings.positions!r} and "
                "characters=false leave nothing to read at the input: give static vectors, "
                "characters or a biLM there."
            )

    def set_static(self, static: StaticVectors) -> None:
        assert self.static is not None
        self.static.set_vectors(static)  # first: another thread may look up the words
        self.vectors = static

    def make_batch(
        self, sentences: Sequence[Sequence[str]], layers: Sequence[np.ndarray] | None
    ) -> TokenBatch:
        """Return a batch of sentences; given layers are (W, L, 2D) each."""
        device = next(self.parameters()).device
        lengths = [len(words) for words in sentences]
        longest = max(lengths, default=0)
        mask = torch.arange(longest) < torch.tensor(lengths).unsqueeze(1)
        padded = None
        if layers is not None:
            num_layers, dim = layers[0].shape[1:]
            values = np.zeros((num_layers, len(layers), longest, dim), dtype=np.float32)
            for row, sentence in enumerate(layers):
                values[:, row, : len(sentence)] = sentence.transpose(1, 0, 2)
            padded = torch.from_numpy(values)
        char_ids = index = static_ids = None
        # Each distinct word goes through the character CNN once, however often it occurs.
        distinct = list(dict.fromkeys(word for words in sentences for word in words))
        if self.characters is not None:
            numbers = {word: number for number, word in enumerate(distinct)}
            index = _ids(sentences, longest, numbers)
            char_ids = torch.from_numpy(self.char_vocab.encode_words(distinct).astype(np.int64))
        if self.vectors is not None:
            ids = {word: self.vectors.id_of(word) for word in distinct}
            static_ids = _ids(sentences, longest, ids)
        return TokenBatch(mask, padded, char_ids, index, static_ids).to(device)

    def reset_parameters(self, generator: torch.Generator) -> None:
        for part in (self.characters, self.static):
            if part is not None:
                part.reset_parameters(generator)

    def forward(self, batch: TokenBatch) -> Tensor:
        parts = []
        if self.static is not None:
            assert batch.static_ids is not None
            parts.append(self.static(batch.static_ids))
        if self.characters is not None:
            assert batch.char_ids is not None
            encoded = _encode_characters(self.characters, batch.char_ids)
            parts.append(encoded[batch.word_index])
        if "input" in self.settings.mix_positions:
            parts.append(self.mix(batch, "input"))
        return torch.cat(parts, dim=2) * batch.mask.unsqueeze(2)

    def join_output(self, encoded: Tensor, batch: TokenBatch) -> Tensor:
        """Append the output mixture, if any: (B, W, X) -> (B, W, X + output_mix_dim)."""
        if self.output_mix_dim:
            encoded = torch.cat([encoded, self.mix(batch, "output")], dim=2)
        return encoded * batch.mask.unsqueeze(2)

    def mix(self, batch: TokenBatch, position: MixPosition) -> Tensor:
        """Return the mixture for a position, or what is in its place, with dropout: (B, W, 2D)."""
        index = self.settings.mix_positions.index(position)
        if self.mixes is None:
            assert self.static is not None
            assert batch.static_ids is not None
            return self.static.mix(index, batch.static_ids)
        assert batch.layers is not None
        return self.mixes.mix(index, batch.layers, batch.mask)

    def set_scales(self, batches: Sequence[TokenBatch]) -> None:
        """Set every γ so that mixtures, and static vectors that have one, are of `START_RMS`."""
        # Layers of a biLM can be ten times as large. From γ = 1 a task model would spend its first
        # epochs on making γ small (`docs/log.md`, 2026-11-22).
        if self.mixes is not None:
            layers = [(batch.layers, batch.mask) for batch in batches if batch.layers is not None]
            self.mixes.scale_to(START_RMS, layers)
        if self.static is not None:
            ids = [batch.static_ids for batch in batches if batch.static_ids is not None]
            self.static.scale_to(START_RMS, ids)

    def penalty(self) -> Tensor | float:
        """Return λ Σ w² over all mixtures, for the task's loss."""
        return 0.0 if self.mixes is None else self.mixes.penalty()
