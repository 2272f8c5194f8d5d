"""The most that matrix products reach on this machine, measured beside the programs.

Whatever door leads to the quickest kernel counts, private operators of PyTorch included: nothing
but the yardstick hangs on them.
"""

import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.training.speed import quick_matmul

SECONDS = 0.25
"""Time given to each kernel in a measurement."""
INT8_MIN_ROWS = 17
"""What PyTorch's product of int8 matrices asks for."""


class Ceiling:
    """Products (rows, inner) x (inner, outer) in one precision, by all kernels that exist here.

    Args:
        precision: ``fp32``, ``bf16`` or ``int8``.
        rows: Rows of the left matrix: sentences that step together.
        inner: Width of the left matrix.
        outer: Width of the result.
    """

    def __init__(self, precision: str, *, rows: int, inner: int, outer: int) -> None:
        if precision == "int8":
            rows = max(rows, INT8_MIN_ROWS)
        self.flop = 2 * rows * inner * outer
        self.kernels = list(_kernels(precision, rows, inner, outer))

    def measure(self) -> float:
        """Return the operations a second of the quickest kernel at this moment."""
        plain = max(map(self._rate, self.kernels))
        with quick_matmul(True):
            return max(plain, self._rate(self.kernels[0]))

    def _rate(self, product: Callable[[], Tensor]) -> float:
        product()
        count, started = 0, time.perf_counter()
        while (taken := time.perf_counter() - started) < SECONDS:
            product()
            count += 1
        return count * self.flop / taken


def _kernels(precision: str, rows: int, inner: int, outer: int) -> Iterator[Callable[[], Tensor]]:
    """Yield the kernels that exist here, PyTorch's usual one first."""
    if precision == "int8":
        left = torch.randint(-127, 127, (rows, inner), dtype=torch.int8)
        right = torch.randint(-127, 127, (inner, outer), dtype=torch.int8)
        yield lambda: torch._int_mm(left, right)  # pyright: ignore[reportPrivateImportUsage]
        if hasattr(torch.ops.onednn, "qlinear_pointwise"):
            yield _packed_int8(left, right)
        return
    dtype = torch.float32 if precision == "fp32" else torch.bfloat16
    x, weight = torch.randn(rows, inner, dtype=dtype), torch.randn(outer, inner, dtype=dtype)
    yield lambda: functional.linear(x, weight)
    if hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
        yield lambda: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")


def _packed_int8(left: Tensor, right: Tensor) -> Callable[[], Tensor]:
    """Return oneDNN's product of quantized activations and a packed weight, to fp32."""
    packed = torch.ops.onednn.qlinear_prepack(right.t().contiguous(), list(left.shape))
    scales = torch.ones(right.shape[1])
    zeros = torch.zeros(right.shape[1], dtype=torch.int64)
    activations = left.to(torch.uint8)
    return lambda: torch.ops.onednn.qlinear_pointwise(
        activations, 1.0, 0, packed, scales, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )
