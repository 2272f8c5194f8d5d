"""The configuration of the LSTM stacks, which loads nothing of texts and files."""

from dataclasses import dataclass

from elmokit.errors import check_ranges

MAX_LAYERS, MAX_DIM = 100, 1 << 16
"""Bounds of every configuration; no network of this kind comes near them."""
CLIPS = (1e-6, 1e6)
FORGET_OFFSET = 1.0  # added to the forget gate at run time; stored biases exclude it


@dataclass(frozen=True, kw_only=True)
class LSTMConfig:
    """Shape of the two LSTM stacks. The defaults are those of the released original model."""

    num_layers: int = 2
    """N, layers in each direction."""
    cell_dim: int = 4096
    """H, the gates' inner width."""
    projection_dim: int = 512
    """D, the width of one direction; if equal to ``cell_dim``, there is no projection."""
    cell_clip: float | None = 3.0
    """Bound on the absolute value of the cell; none: no clipping."""
    projection_clip: float | None = 3.0
    """Bound on the absolute value of the projected output; no effect without a projection."""
    skip_connections: bool = True
    """Add a layer's input to its output, from the second layer on."""

    def __post_init__(self) -> None:
        check_ranges(
            self,
            num_layers=(1, MAX_LAYERS),
            cell_dim=(1, MAX_DIM),
            cell_clip=CLIPS,
            projection_clip=CLIPS,
        )
        check_ranges(self, projection_dim=(1, self.cell_dim))
        for name in ("cell_clip", "projection_clip"):
            if (value := getattr(self, name)) is not None:
                # the hash of a model must not depend on whether a file says 3 or 3.0
                object.__setattr__(self, name, float(value))
