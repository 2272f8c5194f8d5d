"""The row kernels of training, and when kernels are used at all."""

import pytest
import torch

from elmokit.native import training
from elmokit.native.training import kernels_for, load_training_kernels


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


def test_kernels_are_for_fp32_and_bf16_on_the_cpu(kernels):
    assert kernels_for(torch.zeros(1)) == (kernels, torch.float32)
    assert kernels_for(torch.zeros(1, dtype=torch.float64)) is None
    assert kernels_for(torch.zeros(1, device="meta")) is None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = (kernels, torch.bfloat16) if kernels.has_bf16 else None
        assert kernels_for(torch.zeros(1)) == expected
    with torch.autocast("cpu", dtype=torch.float16):
        assert kernels_for(torch.zeros(1)) is None


def test_without_instructions_for_it_half_width_is_left_to_pytorch(kernels, monkeypatch):
    monkeypatch.setattr(kernels, "has_bf16", False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert kernels_for(torch.zeros(1)) is None


def test_without_the_library_pytorch_computes(monkeypatch):
    monkeypatch.setattr(training, "load_training_kernels", lambda: None)
    assert kernels_for(torch.zeros(1)) is None


def test_the_log_says_what_computes(monkeypatch, caplog, kernels):
    load_training_kernels.cache_clear()
    with caplog.at_level("INFO"):
        load_training_kernels()
    assert "training on the CPU uses compiled kernels" in caplog.text
