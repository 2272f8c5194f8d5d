"""The ELMo layer of a task model: a biLM and learned mixtures of its layers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from elmokit.bilm.bilm import BiLM, BiLMState
from elmokit.bilm.masking import lengths_of
from elmokit.bilm.scalar_mix import LayerNorm, ScalarMix

LayerChoice = Literal["mix", "average", "top", "layer0"]
"""The layers of a mixture.

``mix``: all, with learned weights. ``average``: all, weighted equally. ``top``: the last one.
``layer0``: the token layer. The scale gamma is always learned.
"""


@dataclass(frozen=True)
class ELMoOutput:
    """What `ELMo` returns."""

    mixes: list[Float[Tensor, "B W E2"]]
    """``num_mixes`` mixtures, dropout applied."""
    mask: Bool[Tensor, "B W"]
    """True at real positions."""
    state: BiLMState
    """The biLM's memory after each row."""


class LayerMixes(nn.Module):
    """Learned mixtures of biLM layers that are given: the part of ELMo that a task trains.

    Args:
        num_layers: L of the biLM, the token layer included.
        num_mixes: Separate mixtures, one for each place where the task model reads ELMo.
        layers: The layers of each.
        dropout: Of each.
        layer_norm: Normalization before mixing; True means ``token``.
        l2: λ of `penalty`.

    Source: Peters et al. 2018, sections 3.2 and 3.3.
    """

    def __init__(
        self,
        num_layers: int,
        *,
        num_mixes: int = 1,
        layers: LayerChoice = "mix",
        dropout: float = 0.5,
        layer_norm: bool | LayerNorm = False,
        l2: float = 1e-3,
    ) -> None:
        super().__init__()
        if isinstance(layer_norm, bool):
            layer_norm = "token" if layer_norm else "none"
        self.l2 = l2
        self.layers: LayerChoice = layers
        count = num_layers if layers in ("mix", "average") else 1
        self.scalar_mixes = nn.ModuleList(
            ScalarMix(count, layer_norm=layer_norm, trainable=layers == "mix")
            for _ in range(num_mixes)
        )
        self.dropout = nn.Dropout(dropout)

    def mix(
        self, index: int, layers: Float[Tensor, "L B T E2"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T E2"]:
        """Return mixture number ``index`` of all the biLM's layers, with dropout in training."""
        return self.dropout(self._mixed(index, layers, mask))

    def _mixed(self, index: int, layers: Tensor, mask: Tensor) -> Tensor:
        chosen = {"top": layers[-1:], "layer0": layers[:1]}.get(self.layers, layers)
        return self.scalar_mixes[index](chosen, mask)

    @torch.no_grad()
    def scale_to(self, rms: float, samples: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Set every gamma so that its mixture of ``samples`` has this root mean square.

        ``samples`` holds layers with their mask; without a real position nothing changes.
        """
        samples = list(samples)
        for index, mix in enumerate(self.scalar_mixes if samples else ()):
            assert isinstance(mix, ScalarMix)
            real = torch.cat([self._mixed(index, layers, mask)[mask] for layers, mask in samples])
            found = real.square().mean().sqrt()
            if real.numel() and found > 0:
                mix.gamma.mul_(rms / found)

    def penalty(self) -> Float[Tensor, ""]:
        """Return ``l2`` times the sum of all mixtures' squared layer weights."""
        penalties = [mix.penalty() for mix in self.scalar_mixes]  # pyright: ignore[reportCallIssue]
        return self.l2 * torch.stack(penalties).sum()


class ELMo(LayerMixes):
    """Contextual word vectors for a task model.

    Adds the sentence boundaries, runs the biLM once, mixes its layers ``num_mixes`` times with
    separate weights, removes the boundaries and applies dropout.

    Args:
        model: The biLM; frozen and in evaluation mode unless ``trainable_bilm``.
        num_mixes: This and ``layers``, ``dropout``, ``layer_norm``, ``l2``: see `LayerMixes`.
        trainable_bilm: Whether gradients reach the biLM.
        keep_boundaries: Return the positions of ``<S>`` and ``</S>`` too (W + 2 positions).

    Shape: char_ids (B, W, C) without boundaries, as from `elmokit.batch_to_ids` -> `ELMoOutput`.
    Source: Peters et al. 2018, sections 3.2 and 3.3.

    Raises:
        ValueError: if ``num_mixes`` is below 1, or ``layer_norm="batch"`` has boundaries to keep.
    """

    def __init__(
        self,
        model: BiLM,
        *,
        num_mixes: int = 1,
        layers: LayerChoice = "mix",
        dropout: float = 0.5,
        layer_norm: bool | LayerNorm = False,
        l2: float = 1e-3,
        trainable_bilm: bool = False,
        keep_boundaries: bool = False,
    ) -> None:
        if num_mixes < 1:
            raise ValueError(f"`num_mixes` must be at least 1, got {num_mixes}.")
        if layer_norm == "batch" and keep_boundaries:
            raise ValueError(
                "layer_norm='batch' leaves out the boundaries, so they cannot be kept; use "
                "layer_norm='batch_with_boundaries'."
            )
        super().__init__(
            model.num_layers, num_mixes=num_mixes, layers=layers, dropout=dropout,
            layer_norm=layer_norm, l2=l2,
        )  # fmt: skip
        self.bilm = model
        self.trainable_bilm = trainable_bilm
        self.keep_boundaries = keep_boundaries
        model.requires_grad_(trainable_bilm)
        self.train(self.training)

    def train(self, mode: bool = True) -> "ELMo":
        """Set the mode; a frozen biLM stays in evaluation mode."""
        super().train(mode)
        if not self.trainable_bilm:
            self.bilm.eval()
        return self

    def forward(
        self, ids: Int[Tensor, "B W C"] | Int[Tensor, "B W"], *, state: BiLMState | None = None
    ) -> ELMoOutput:
        """Return the mixtures of a batch of sentences.

        Args:
            ids: Character ids (B, W, C), or word ids (B, W) for word-input models, without
                boundaries; 0 where padded.
            state: Memory to start from; none: zeros.
        """
        mask = (ids > 0).any(dim=2) if ids.dim() == 3 else ids > 0
        with torch.set_grad_enabled(self.trainable_bilm and torch.is_grad_enabled()):
            out = self.bilm(self._add_boundaries(ids, lengths_of(mask)), state=state)
        mixes = [
            self.dropout(self._at_words(index, out.layers, out.mask, mask))
            for index in range(len(self.scalar_mixes))
        ]
        return ELMoOutput(mixes, out.mask if self.keep_boundaries else mask, out.state)

    def _at_words(self, index: int, layers: Tensor, mask: Tensor, inner_mask: Tensor) -> Tensor:
        """Mix and remove boundaries that are not kept; padded positions of the result are zero."""
        if self.scalar_mixes[index].layer_norm == "batch":
            layers = torch.stack([_strip(layer, inner_mask) for layer in layers])
            return self._mixed(index, layers, inner_mask) * inner_mask.unsqueeze(2)
        mixed = self._mixed(index, layers, mask)
        return mixed * mask.unsqueeze(2) if self.keep_boundaries else _strip(mixed, inner_mask)

    def _add_boundaries(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Put ``<S>`` before and ``</S>`` after every sentence: (B, W, …) -> (B, W + 2, …)."""
        begin, end = self._boundary_rows(ids)
        padded = ids.new_zeros(ids.shape[0], 2 + ids.shape[1], *ids.shape[2:])
        padded[:, 1:-1] = ids
        padded[:, 0] = begin
        padded[torch.arange(len(lengths), device=ids.device), lengths + 1] = end
        return padded

    def _boundary_rows(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return the ids of ``<S>`` and ``</S>``: scalars for word ids, else rows (C,)."""
        if ids.dim() == 2:
            vocab = getattr(self.bilm, "word_vocab", None)
            if vocab is None:
                raise ValueError(
                    "A word-input model needs its `word_vocab` to know the ids of <S> and </S>."
                )
            return ids.new_tensor(vocab.sentence_begin_id), ids.new_tensor(vocab.sentence_end_id)
        vocab = self.bilm.char_vocab
        rows = (vocab.sentence_begin, vocab.sentence_end)
        begin, end = (torch.from_numpy(row.astype("int64")).to(ids) for row in rows)
        return begin, end


def _strip(x: Float[Tensor, "B T X"], inner_mask: Bool[Tensor, "B W"]) -> Float[Tensor, "B W X"]:
    """Remove ``<S>`` and ``</S>``; padded positions become zero."""
    return x[:, 1:-1] * inner_mask.unsqueeze(2)
