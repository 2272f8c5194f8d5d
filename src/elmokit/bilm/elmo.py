"""The ELMo layer of a task model: a biLM and one or several learned mixtures of its layers."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from elmokit.bilm.bilm import BiLM, BiLMState
from elmokit.bilm.masking import lengths_of
from elmokit.bilm.scalar_mix import LayerNorm, ScalarMix


@dataclass(frozen=True)
class ELMoOutput:
    """What `ELMo` returns."""

    mixes: list[Float[Tensor, "B W E2"]]
    """One mixture per place of use, dropout applied."""
    mask: Bool[Tensor, "B W"]
    """True at real positions."""
    state: BiLMState
    """The biLM's memory after each row."""


class ELMo(nn.Module):
    """Contextual word vectors for a task model.

    Adds the sentence boundaries, runs the biLM once, mixes its layers ``num_mixes`` times with
    separate weights (one per place of use), takes the boundaries off and applies dropout.

    Args:
        model: The biLM. It is frozen, and stays in evaluation mode, unless ``trainable_bilm``.
        num_mixes: Places of use in the task model.
        layers: ``mix`` learns the layer weights, ``average`` fixes them equal, ``top`` takes the
            last layer alone; gamma is learned in each.
        dropout: Applied to every mixture in training.
        layer_norm: Normalization of the layers before mixing; True means ``token``.
        l2: λ of `penalty`.
        trainable_bilm: Whether gradients reach the biLM.
        keep_boundaries: Return the positions of ``<S>`` and ``</S>`` too (W + 2 positions).

    Shape: char_ids (B, W, C) without boundaries, as `elmokit.batch_to_ids` makes them ->
        `ELMoOutput`.
    Source: Peters et al. 2018, sections 3.2 and 3.3.

    Raises:
        ValueError: if ``num_mixes`` is below 1, or ``layer_norm`` leaves out boundaries to be kept.
    """

    def __init__(
        self,
        model: BiLM,
        *,
        num_mixes: int = 1,
        layers: Literal["mix", "average", "top"] = "mix",
        dropout: float = 0.5,
        layer_norm: bool | LayerNorm = False,
        l2: float = 1e-3,
        trainable_bilm: bool = False,
        keep_boundaries: bool = False,
    ) -> None:
        super().__init__()
        if num_mixes < 1:
            raise ValueError(f"`num_mixes` must be at least 1, got {num_mixes}.")
        if isinstance(layer_norm, bool):
            layer_norm = "token" if layer_norm else "none"
        if layer_norm == "batch" and keep_boundaries:
            raise ValueError(
                "layer_norm='batch' leaves boundaries out, so they cannot be kept; use "
                "layer_norm='batch_with_boundaries'."
            )
        self.bilm = model
        self.trainable_bilm = trainable_bilm
        self.keep_boundaries = keep_boundaries
        self.l2 = l2
        self.layers = layers
        num_layers = 1 if layers == "top" else model.num_layers
        self.scalar_mixes = nn.ModuleList(
            ScalarMix(num_layers, layer_norm=layer_norm, trainable=layers == "mix")
            for _ in range(num_mixes)
        )
        self.dropout = nn.Dropout(dropout)
        model.requires_grad_(trainable_bilm)
        self.train(self.training)

    def train(self, mode: bool = True) -> "ELMo":
        """Switch training mode; a frozen biLM stays in evaluation mode."""
        super().train(mode)
        if not self.trainable_bilm:
            self.bilm.eval()
        return self

    def penalty(self) -> Float[Tensor, ""]:
        """Return ``l2`` times the squared layer weights of all mixtures, for the task's loss."""
        total = torch.zeros((), device=next(self.parameters()).device)
        for mix in self.scalar_mixes:
            total = total + mix.penalty()  # pyright: ignore[reportCallIssue]
        return self.l2 * total

    def forward(
        self, ids: Int[Tensor, "B W C"] | Int[Tensor, "B W"], *, state: BiLMState | None = None
    ) -> ELMoOutput:
        """Return the mixtures of a batch of sentences.

        Args:
            ids: Character ids (B, W, C) without boundaries, padded with rows of zeros; word ids (B,
                W) for word-input models.
            state: Memory to start from; none: every sentence starts fresh.
        """
        mask = (ids > 0).any(dim=2) if ids.dim() == 3 else ids > 0
        with torch.set_grad_enabled(self.trainable_bilm and torch.is_grad_enabled()):
            out = self.bilm(self._add_boundaries(ids, lengths_of(mask)), state=state)
        layers = out.layers[-1:] if self.layers == "top" else out.layers
        mixes = [self.dropout(self._mix(mix, layers, out.mask, mask)) for mix in self.scalar_mixes]
        return ELMoOutput(mixes, out.mask if self.keep_boundaries else mask, out.state)

    def _mix(self, mix: nn.Module, layers: Tensor, mask: Tensor, inner_mask: Tensor) -> Tensor:
        """Mix, with the statistics that ``layer_norm`` asks for; take unwanted boundaries off.

        Padded positions of the result are zero.
        """
        if mix.layer_norm == "batch":
            layers = torch.stack([_strip(layer, inner_mask) for layer in layers])
            return mix(layers, inner_mask) * inner_mask.unsqueeze(2)
        mixed = mix(layers, mask)
        return mixed * mask.unsqueeze(2) if self.keep_boundaries else _strip(mixed, inner_mask)

    def _add_boundaries(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Put ``<S>`` before and ``</S>`` after every sentence: (B, W, …) -> (B, W + 2, …)."""
        begin, end = self._boundary_rows(ids)
        padded = torch.zeros(
            ids.shape[0], 2 + ids.shape[1], *ids.shape[2:], dtype=ids.dtype, device=ids.device
        )
        padded[:, 1:-1] = ids
        padded[:, 0] = begin
        padded[torch.arange(len(lengths), device=ids.device), lengths + 1] = end
        return padded

    def _boundary_rows(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return the ids of ``<S>`` and ``</S>`` in the form of ``ids``."""
        if ids.dim() == 2:
            vocab = getattr(self.bilm, "word_vocab", None)
            if vocab is None:
                raise ValueError(
                    "A word-input model needs its `word_vocab` to know the ids of <S> and </S>."
                )
            return ids.new_tensor(vocab.sentence_begin_id), ids.new_tensor(vocab.sentence_end_id)
        vocab = self.bilm.char_vocab
        begin, end = (
            torch.from_numpy(row.astype("int64")).to(ids)
            for row in (vocab.sentence_begin, vocab.sentence_end)
        )
        return begin, end


def _strip(x: Float[Tensor, "B T X"], inner_mask: Bool[Tensor, "B W"]) -> Float[Tensor, "B W X"]:
    """Take off ``<S>`` and ``</S>``; padded positions become zero."""
    return x[:, 1:-1] * inner_mask.unsqueeze(2)
