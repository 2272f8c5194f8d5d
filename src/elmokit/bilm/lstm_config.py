"""The configuration of the LSTM stacks, which loads nothing of texts and files."""

from dataclasses import dataclass
from typing import Annotated

from elmokit.errors import Bounds, CheckedFields, check_setting

MAX_LAYERS, MAX_DIM = 100, 1 << 16
"""Bounds of every configuration; no network of this kind comes near them."""
Dim = Annotated[int, Bounds(1, MAX_DIM)]
Clip = Annotated[float, Bounds(1e-6, 1e6)]
FORGET_OFFSET = 1.0  # added to the forget gate at run time; stored biases exclude it


@dataclass(frozen=True, kw_only=True)
class LSTMConfig(CheckedFields):
    """Shape of the two LSTM stacks. The defaults are those of the released original model."""

    num_layers: Annotated[int, Bounds(1, MAX_LAYERS)] = 2
    """N, layers in each direction."""
    cell_dim: Dim = 4096
    """H, the gates' inner width."""
    projection_dim: int = 512
    """D, the width of one direction; if equal to ``cell_dim``, there is no projection."""
    cell_clip: Clip | None = 3.0
    """Bound on the absolute value of the cell; none: no clipping."""
    projection_clip: Clip | None = 3.0
    """Bound on the absolute value of the projected output; no effect without a projection."""
    skip_connections: bool = True
    """Add a layer's input to its output, from the second layer on."""

    def __post_init__(self) -> None:
        super().__post_init__()
        up_to_cell_dim = Annotated[int, Bounds(1, self.cell_dim)]
        check_setting(self.projection_dim, up_to_cell_dim, name="projection_dim")
        for name in ("cell_clip", "projection_clip"):
            if (value := getattr(self, name)) is not None:
                # the hash of a model must not depend on whether a file says 3 or 3.0
                object.__setattr__(self, name, float(value))
