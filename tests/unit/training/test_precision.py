"""Precision of training: what runs in which width, and that settings are put back."""

import pytest
import torch

from elmokit.training import precision
from elmokit.training.precision import autocast, quick_matmul

CPU = torch.device("cpu")


def test_fp32_products_stay_fp32():
    with autocast("fp32", CPU)():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_bf16_products_are_half_width():
    context = autocast("bf16", CPU)
    for _ in range(2):  # the loop enters it at every step
        with context():
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


@pytest.mark.parametrize(
    ("wanted", "is_exact", "expected"),
    [(True, True, "medium"), (True, False, "highest"), (False, True, "highest")],
)
def test_quick_kernels_are_used_only_where_wanted_and_exact(
    monkeypatch, wanted, is_exact, expected
):
    monkeypatch.setattr(precision, "_medium_is_exact", lambda: is_exact)
    with quick_matmul(wanted) as used:
        assert torch.get_float32_matmul_precision() == expected
        assert used == (expected == "medium")
    assert torch.get_float32_matmul_precision() == "highest"


def test_the_setting_is_put_back_after_an_error(monkeypatch):
    monkeypatch.setattr(precision, "_medium_is_exact", lambda: True)
    with pytest.raises(RuntimeError, match="stop"), quick_matmul(True):
        raise RuntimeError("stop")
    assert torch.get_float32_matmul_precision() == "highest"


def test_the_error_is_measured_on_this_processor():
    with quick_matmul(True) as used:
        generator = torch.Generator().manual_seed(1)
        a, b = (torch.randn(64, 64, generator=generator) for _ in range(2))
        error = ((a @ b) - (a.double() @ b.double())).abs().max() / 8
        assert error < (1e-5 if used else 1e-6)
