"""`PackedLogSumExp`: the normalizer of a softmax over a vocabulary."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.kernels.inference import Kernels
from elmokit.kernels.library import Kind
from elmokit.kernels.matrices import pack_matrix

_LOG2_E = 1 / math.log(2)
_NEVER = -1e30  # bias of padding columns


class PackedLogSumExp:
    """``(x @ weight.T + bias).logsumexp(1)`` in one pass that stores no scores.

    The bits of a row depend neither on other rows nor on threads. Products use ``kind``;
    exponentials and sums are fp32. Shape: weight (N, K), bias (N,).
    """

    def __init__(self, kernels: Kernels, weight: Tensor, bias: Tensor, kind: Kind) -> None:
        self._kernels = kernels
        self._matrix = pack_matrix(kernels, weight * _LOG2_E, kind)
        missing = -len(bias) % kernels.panel_width
        self._bias = functional.pad(bias * _LOG2_E, (0, missing), value=_NEVER)

    def __call__(self, x: Tensor) -> Tensor:
        """Compute (R, K), contiguous fp32 -> (R,)."""
        rows, inner = x.shape
        out = torch.empty(rows)
        self._kernels.call(
            "logsumexp", m=self._matrix.argument(self._kernels), x=x, bias=self._bias, out=out,
            rows=rows, inner=inner, scales=torch.empty(rows), shifts=torch.empty(rows),
            groups=torch.empty(rows, self._matrix.num_groups, dtype=torch.int32),
            sums=torch.empty(rows, self._kernels.vector_length),
        )  # fmt: skip
        return out.div_(_LOG2_E)
