"""The biLM's LSTM stacks for training; the layers are in `elmokit.training.fused.recurrence`."""

from collections.abc import Callable

import torch
from torch import Tensor

from elmokit.bilm.bilm import BiLM, Direction, DirectionState
from elmokit.bilm.lstmp import LSTMP
from elmokit.kernels.training import kernels_for
from elmokit.training.fused.recurrence import KernelRecurrence, TorchRecurrence


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


def run_fused(layer: LSTMP, x: Tensor, state: DirectionState) -> tuple[Tensor, DirectionState]:
    """Return ``layer(x, state)``; under autocast without kernels the layer itself is called.

    Shape: x (B, T, X), state ((B, D), (B, H)) -> outputs (B, T, D), state.
    """
    available, config = kernels_for(layer.input_weight), layer.config
    # the loops of the kernels have no remainders
    has_whole_vectors = (
        available is not None
        and config.cell_dim % available[0].vector_length == 0
        and config.projection_dim % 2 == 0
    )
    if not has_whole_vectors and torch.is_autocast_enabled(x.device.type):
        return layer(x, state)
    inputs = (config, x.transpose(0, 1), *state, *layer.weights())
    with torch.autocast("cpu", enabled=False):
        if available is not None and has_whole_vectors:
            outputs, hidden, cell = KernelRecurrence.apply(*available, *inputs)
        else:
            outputs, hidden, cell = TorchRecurrence.apply(*inputs)
    return outputs.transpose(0, 1), (hidden, cell)
