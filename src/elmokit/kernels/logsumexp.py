"""`PackedLogSumExp`: what a softmax over a vocabulary needs of the scores of all words."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.kernels.inference import Kernels
from elmokit.kernels.library import Kind
from elmokit.kernels.matrices import pack_matrix

_LOG2_E = 1 / math.log(2)
_NEVER = -1e30
"""Bias of the columns that only fill a panel."""


class PackedLogSumExp:
    """``(x @ weight.T + bias).logsumexp(1)`` in one pass that keeps no score.

    A row gets the same bits whatever rows are beside it and however many threads work.

    Args:
        kernels: The library.
        weight: (N, K).
        bias: (N,).
        kind: How the weights are held and multiplied; exponentials and sums are fp32.
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
            "logsumexp",
            m=self._matrix.argument(self._kernels),
            x=x,
            bias=self._bias,
            out=out,
            rows=rows,
            inner=inner,
            groups=torch.empty(rows, self._matrix.num_groups, dtype=torch.int32),
            scales=torch.empty(rows),
            shifts=torch.empty(rows),
            sums=torch.empty(rows, self._kernels.vector_length),
        )
        return out.div_(_LOG2_E)
