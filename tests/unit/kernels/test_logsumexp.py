"""Sums of exponentials over the columns of a product."""

import pytest
import torch

from elmokit.kernels.library import load_kernels

from ...builders.tensor_layers import PackedLogSumExp

kernels = load_kernels()
pytestmark = pytest.mark.skipif(kernels is None, reason="no C compiler on this machine")


def matrices(num_rows, num_columns, inner):
    generator = torch.Generator().manual_seed(num_columns)
    shapes = (num_rows, inner), (num_columns, inner), (num_columns,)
    x, weight, bias = (torch.randn(shape, generator=generator) for shape in shapes)
    return x, weight / inner**0.5, bias


@pytest.mark.parametrize(("kind", "tolerance"), [("fp32", 2e-6), ("bf16", 3e-2), ("int8", 6e-2)])
@pytest.mark.parametrize("num_columns", [1, 63, 64, 1000])
@pytest.mark.parametrize("inner", [3, 32])
def test_equals_pytorch(kind, tolerance, num_columns, inner):
    x, weight, bias = matrices(101, num_columns, inner)
    expected = (x.double() @ weight.double().T + bias.double()).logsumexp(1).float()
    nobody = torch.zeros(101), torch.full((101,), -1, dtype=torch.int32)
    found = PackedLogSumExp(kernels, weight, bias, kind)(x, *nobody)
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=1e-6)


@pytest.mark.parametrize("kind", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("with_mean_and_rank", [False, True])
def test_a_known_score_takes_the_place_of_its_product(kind, with_mean_and_rank):
    """So that a probability is never above 1, however its product is rounded."""
    x, weight, bias = matrices(300, 200, 32)
    columns = torch.arange(300, dtype=torch.int32) % 200
    targets = 100 + torch.randn(300, generator=torch.Generator().manual_seed(1))
    packed = PackedLogSumExp(kernels, weight, bias, kind)
    found = packed.with_mean_and_rank if with_mean_and_rank else lambda *given: [packed(*given)]
    torch.testing.assert_close(found(x, targets, columns)[0], targets, rtol=1e-6, atol=0)
    others = (x @ weight.T + bias).scatter(1, columns[:, None].long(), -torch.inf).logsumexp(1)
    nothing = torch.full((300,), -1e4)
    tolerance = {"fp32": 2e-6, "bf16": 3e-2, "int8": 6e-2}[kind]
    torch.testing.assert_close(found(x, nothing, columns)[0], others, atol=tolerance, rtol=1e-6)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("place", [0, 199_999, 399_999])
def test_small_terms_of_a_large_vocabulary_are_not_lost(share, place):
    """One running sum in fp32 is off by 1e-3."""
    bias = torch.randn(400_000, generator=torch.Generator().manual_seed(1))
    bias[place] = (share / (1 - share) * bias.double().exp().sum()).log()
    packed = PackedLogSumExp(kernels, torch.zeros(400_000, 1), bias, "fp32")
    nobody = torch.zeros(1), torch.full((1,), -1, dtype=torch.int32)
    total, mean, _ = packed.with_mean_and_rank(torch.zeros(1, 1), *nobody)
    expected = bias.double().logsumexp(0)
    assert abs(total.item() - expected.item()) < 1e-5
    assert abs(mean.item() - (bias.double().softmax(0) * bias).sum().item()) < 1e-4
