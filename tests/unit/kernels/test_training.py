"""The row kernels of training, and when kernels are used at all."""

import pytest
import torch

from elmokit.kernels import training
from elmokit.kernels.library import address
from elmokit.kernels.training import kernels_for, load_training_kernels


@pytest.fixture
def kernels():
    loaded = load_training_kernels()
    if loaded is None:
        pytest.skip("no C compiler on this machine")
    return loaded


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("columns", [1, 17, 128, 300])
def test_column_sums(kernels, dtype, columns):
    values, weights = normal(40, columns).to(dtype), torch.linspace(-1, 1, 40)
    exact = values.double()
    for ours, wanted in (
        (kernels.column_sums(values), exact.sum(0)),
        (kernels.column_sums(values, weights), weights.double() @ exact),
    ):
        torch.testing.assert_close(ours.double(), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dim", [1, 7, 64])
def test_scattered_rows_are_added_even_twice_to_one_place(kernels, dim):
    rows, places = normal(9, dim), torch.tensor([3, 0, 3, 5, 5, 5, 1, 0, 3])
    out = torch.ones(6, dim)
    kernels.scatter_rows(out, places, rows)
    torch.testing.assert_close(out, torch.ones(6, dim).index_add(0, places, rows))


@pytest.mark.parametrize(
    "values",
    [torch.zeros(2, 3).t(), torch.zeros(2, dtype=torch.float64), torch.zeros(2, device="meta")],
    ids=["transposed", "double", "elsewhere"],
)
def test_what_c_would_misread_is_refused(values):
    with pytest.raises(ValueError, match=r"float32 .*CPU, got float.* shape \(\d"):
        address(values)


def test_kernels_are_for_fp32_parameters_on_the_cpu(kernels, monkeypatch):
    assert kernels_for(torch.zeros(1)) == (kernels, torch.float32)
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        assert kernels_for(torch.zeros(1, dtype=dtype)) is None
    assert kernels_for(torch.zeros(1, device="meta")) is None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = (kernels, torch.bfloat16) if kernels.has_bf16 else None
        assert kernels_for(torch.zeros(1)) == expected
        assert kernels_for(torch.zeros(1, dtype=torch.float64)) is None
    with torch.autocast("cpu", dtype=torch.float16):
        assert kernels_for(torch.zeros(1)) is None
    monkeypatch.setattr(training, "load_training_kernels", lambda: None)
    assert kernels_for(torch.zeros(1)) is None
