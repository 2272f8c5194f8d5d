"""Memory of the kernels under other defaults of PyTorch."""

import pytest
import torch

from elmokit.kernels.buffers import fp32_empty, fp32_zeros, int32_empty


@pytest.fixture(autouse=True)
def other_defaults():
    torch.set_default_device("meta")
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("make", "dtype"),
    [(fp32_empty, torch.float32), (fp32_zeros, torch.float32), (int32_empty, torch.int32)],
)
def test_type_and_place_are_those_of_the_kernels(make, dtype):
    made = make(2, 3)
    assert (tuple(made.shape), made.dtype, made.device.type) == ((2, 3), dtype, "cpu")
    assert make is not fp32_zeros or not made.any()
