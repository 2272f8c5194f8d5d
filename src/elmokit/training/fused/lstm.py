"""`LSTMP` for training, with a hand-written backward pass.

The input product of all steps is one matrix product, and so is each weight's gradient. Only the
recurrence goes step by step (`elmokit.training.fused.recurrence`).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.bilm.bilm import BiLM, Direction, DirectionState
from elmokit.bilm.lstmp import LSTMP, LSTMConfig, LSTMWeights
from elmokit.kernels.training import TrainingKernels, kernels_for
from elmokit.training.fused.recurrence import KernelRecurrence, Recurrence, TorchRecurrence


def run_direction_fused(
    model: BiLM,
    direction: Direction,
    x: Tensor,
    *,
    state: DirectionState,
    dropout: Callable[[Tensor], Tensor],
) -> tuple[Tensor, DirectionState]:
    """Return the top of `BiLM.run_direction` without padding, with dropout, and the new state.

    ``dropout`` acts on every layer's input; the skip connection adds the dropped input.
    """
    stack = model.forward_layers if direction == "forward" else model.backward_layers
    hiddens, cells = [], []
    for index, (layer, hidden, cell) in enumerate(zip(stack, *state, strict=True)):
        assert isinstance(layer, LSTMP)
        layer_in = dropout(x)
        x, (hidden, cell) = run_fused(layer, layer_in, (hidden, cell))
        if index > 0 and model.config.lstm.skip_connections:
            x = x + layer_in
        hiddens.append(hidden)
        cells.append(cell)
    return x, (torch.stack(hiddens), torch.stack(cells))


def run_fused(
    layer: LSTMP, x: Tensor, state: DirectionState, mask: Tensor | None = None
) -> tuple[Tensor, DirectionState]:
    """Return ``layer(x, state, mask)``; the layer itself is called if there is a mask.

    Under autocast to bf16 the kernels keep cells and sums in fp32; without kernels the layer is
    called.

    Shape: x (B, T, X), state ((B, D), (B, H)) -> outputs (B, T, D), state.
    """
    if mask is not None or x.numel() == 0:
        return layer(x, state, mask)
    found = kernels_for(layer.input_weight)
    if found is not None and _has_whole_vectors(layer.config, found[0]):
        recurrence = KernelRecurrence(*found)
    elif torch.is_autocast_enabled(x.device.type):
        return layer(x, state)
    else:
        recurrence = TorchRecurrence()
    with torch.autocast("cpu", enabled=False):
        outputs, hidden, cell = _FusedLSTMP.apply(
            recurrence, layer.config, x.transpose(0, 1), *state, *layer.weights()
        )
    return outputs.transpose(0, 1), (hidden, cell)


def _has_whole_vectors(config: LSTMConfig, kernels: TrainingKernels) -> bool:
    return config.cell_dim % kernels.vector_length == 0 and config.projection_dim % 2 == 0


class _FusedLSTMP(torch.autograd.Function):
    """Time-major LSTMP: x (T, B, X) -> (outputs (T, B, D), hidden (B, D), cell (B, H))."""

    @staticmethod
    def forward(
        ctx: Any,
        recurrence: Recurrence,
        config: LSTMConfig,
        x: Tensor,
        hidden: Tensor,
        cell: Tensor,
        *weights: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        hiddens, cells, saved = recurrence.forward(config, x, hidden, cell, LSTMWeights(*weights))  # pyright: ignore[reportArgumentType]
        ctx.recurrence, ctx.config, ctx.num_weights = recurrence, config, len(weights)
        ctx.save_for_backward(hiddens, cells, *saved, *weights)
        return hiddens[1:], hiddens[-1].clone(), cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        tensors, count = ctx.saved_tensors, ctx.num_weights
        saved, weights = tensors[:-count], LSTMWeights(*tensors[-count:])
        gradients = ctx.recurrence.backward(ctx.config, saved, weights, grads)
        return None, None, *gradients
