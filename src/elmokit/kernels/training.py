"""The C kernels of training: LSTM recurrence, convolutions with maximum, passes over rows.

Values are fp32 or bf16, like the tensors; sums are fp32. No result depends on the number of
threads.
"""

import ctypes
import functools
import logging

import torch
from torch import Tensor

from elmokit.kernels.build import Interface, load_library, read_interface, say_once
from elmokit.kernels.library import Library, MatrixKind, group_size
from elmokit.kernels.packed_matrix import PackedMatrix

log = logging.getLogger(__name__)

KINDS: dict[torch.dtype, MatrixKind] = {torch.float32: "fp32", torch.bfloat16: "bf16"}
"""Types of training."""


# Whatever PyTorch's default type and device are, the kernels read and write fp32 on the CPU.


def fp32_empty(*shape: int) -> Tensor:
    return torch.empty(*shape, dtype=torch.float32, device="cpu")


def fp32_zeros(*shape: int) -> Tensor:
    return torch.zeros(*shape, dtype=torch.float32, device="cpu")


def check_ids(ids: Tensor, *, lowest: int, highest: int, what: str) -> None:
    """Raise `ValueError` for ids outside the table that C would read; ``what`` names them."""
    if ids.numel() == 0:
        return
    smallest, largest = (int(bound) for bound in ids.aminmax())
    if smallest < lowest or largest > highest:
        wrong = smallest if smallest < lowest else largest
        raise ValueError(f"{what} must be {lowest} to {highest}, got {wrong}.")


class TrainingKernels(Library):
    def __init__(self, library: ctypes.CDLL, interface: Interface) -> None:
        super().__init__(library, interface)
        self.types = {dtype: self.type_of(kind) for dtype, kind in KINDS.items()}
        """Type numbers in C."""
        self.has_bf16 = bool(self._ask("has_bf16"))
        """Whether this processor has bf16 multiply instructions."""

    def pack(
        self, weight: Tensor, dtype: torch.dtype, *, transposed: bool = False, blocks: int = 1
    ) -> PackedMatrix:
        """Pack contiguous fp32 (N, K) for ``x @ weight.T``, or ``x @ weight`` if ``transposed``.

        The rows of ``blocks`` equal parts of N alternate in panels: 4 for LSTM gates.
        """
        columns, inner = reversed(weight.shape) if transposed else weight.shape
        kind, panel = KINDS[dtype], self.panel_width
        num_panels, num_groups = -(-columns // panel), -(-inner // group_size(kind))
        values = torch.empty(num_panels, num_groups, panel, dtype=torch.int32, device="cpu")
        self.call(
            "pack", source=weight, columns=columns, inner=inner, is_transposed=transposed,
            blocks=blocks, to=values, type=self.types[dtype],
        )  # fmt: skip
        return PackedMatrix(kind, values)

    def column_sums(self, values: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return the sums over rows, fp32: (X, N), weights (X,) -> (N,)."""
        out = fp32_empty(values.shape[1])
        self.call(
            "column_sums", type=self.types[values.dtype], num_rows=values.shape[0],
            num_columns=values.shape[1], values=values, weights=weights, out=out,
        )  # fmt: skip
        return out

    def scatter_rows(self, out: Tensor, places: Tensor, rows: Tensor) -> None:
        """Add rows (R, D) to the rows ``places`` (R,), which may repeat, of ``out`` (V, D)."""
        check_ids(places, lowest=0, highest=len(out) - 1, what="rows of the output")
        num_rows, dim = rows.shape
        self.call("scatter_rows", num_rows=num_rows, dim=dim, out=out, places=places, rows=rows)


@functools.cache
def load_training_kernels() -> TrainingKernels | None:
    """Return the kernels, or None where they cannot be compiled (logged)."""
    library = load_library("training")
    if library is None:
        return None
    kernels = TrainingKernels(library, read_interface("training"))
    log.debug("training on the CPU uses compiled kernels: fp32%s", ", bf16" * kernels.has_bf16)
    return kernels


def kernels_for(weight: Tensor) -> tuple[TrainingKernels, torch.dtype] | None:
    """Return kernels and product type for a module with the parameter ``weight``.

    None (use PyTorch) for other devices than the CPU and other parameters than fp32, under autocast
    to a type without instructions, and where the library cannot be built.
    """
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        return None
    is_cast = torch.is_autocast_enabled("cpu")
    dtype = torch.get_autocast_dtype("cpu") if is_cast else torch.float32
    if dtype not in KINDS:
        return None
    kernels = load_training_kernels()
    if kernels is None:
        return None
    if dtype == torch.bfloat16 and not kernels.has_bf16:
        say_once("this processor has no bf16 instructions: PyTorch trains in bf16, more slowly")
        return None
    return kernels, dtype
