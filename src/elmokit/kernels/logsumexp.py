"""`PackedLogSumExp`: the normalizer of a softmax over a vocabulary."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.kernels.buffers import fp32_empty, fp32_zeros, int32_empty
from elmokit.kernels.inference import Kernels
from elmokit.kernels.library import Kind
from elmokit.kernels.matrices import pack_matrix

_LOG2_E = 1 / math.log(2)
_NEVER = -1e30  # bias of padding columns


class PackedLogSumExp:
    """``(x @ weight.T + bias).logsumexp(1)`` in one pass that stores no scores.

    The bits of a row depend neither on other rows nor on threads. Products use ``kind``;
    exponentials and sums are fp32, in two levels, so that the many small terms of a large
    vocabulary are not lost. Shape: weight (N, K), bias (N,).
    """

    def __init__(self, kernels: Kernels, weight: Tensor, bias: Tensor, kind: Kind) -> None:
        self._kernels = kernels
        self._matrix = pack_matrix(kernels, weight * _LOG2_E, kind)
        self.num_columns = len(bias)
        """N."""
        missing = -len(bias) % kernels.panel_width
        self._bias = functional.pad(bias * _LOG2_E, (0, missing), value=_NEVER)

    def __call__(self, x: Tensor, targets: Tensor, columns: Tensor) -> Tensor:
        """Compute (R, K) -> (R,).

        Args:
            x: Contiguous fp32.
            targets: A score of each row, in fp32 (R,), that takes the place of its product, so that
                it is never above the logsumexp.
            columns: int32 (R,): its column; -1: none.
        """
        return self._run(x, targets, columns, {})[0]

    def with_others(
        self, x: Tensor, targets: Tensor, columns: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute three figures of every row in the same pass. Takes the arguments of a call.

        Returns:
            The logsumexp, with the same bits; the mean score under the softmax; the number of
            scores above the row's target. Each (R,).
        """
        num_rows, lanes = len(x), self._kernels.vector_length
        moments, moment_totals = fp32_zeros(num_rows, lanes), fp32_zeros(num_rows, lanes)
        above = torch.zeros(num_rows, lanes, dtype=torch.int32, device="cpu")
        others = {"moments": moments, "moment_totals": moment_totals, "above": above}
        out, totals, shifts = self._run(x, targets, columns, others)
        means = (moment_totals.sum(dim=1) / totals.sum(dim=1) + shifts) / _LOG2_E
        return out, means, above.sum(dim=1)

    def _run(
        self, x: Tensor, targets: Tensor, columns: Tensor, others: dict[str, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the logsumexp and the buffers ``totals`` and ``shifts`` of `logsumexp_call`."""
        num_rows, lanes = len(x), self._kernels.vector_length
        out, shifts = fp32_empty(num_rows), fp32_empty(num_rows)
        totals = fp32_empty(num_rows, lanes)
        self._kernels.call(
            "logsumexp", m=self._matrix.argument(self._kernels), x=x, bias=self._bias, out=out,
            rows=num_rows, inner=x.shape[1], scales=fp32_empty(num_rows), shifts=shifts,
            groups=int32_empty(num_rows, self._matrix.num_groups),
            sums=fp32_empty(num_rows, lanes), totals=totals, targets=targets * _LOG2_E,
            columns=columns.contiguous(), **others,
        )  # fmt: skip
        return out.div_(_LOG2_E), totals, shifts
