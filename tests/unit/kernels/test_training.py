"""What kernels of training refuse, and when they are used; their numbers: `training/fused`."""

import pytest
import torch

from elmokit.kernels import training
from elmokit.kernels.library import address
from elmokit.kernels.training import kernels_for, load_training_kernels


@pytest.mark.parametrize(
    "values",
    [torch.zeros(2, 3).t(), torch.zeros(2, dtype=torch.float64), torch.zeros(2, device="meta")],
    ids=["transposed", "double", "elsewhere"],
)
def test_what_c_would_misread_is_refused(values):
    with pytest.raises(ValueError, match=r"float32 .*CPU, got float.* shape \(\d"):
        address(values)


def test_kernels_are_for_fp32_parameters_on_the_cpu(monkeypatch):
    kernels = load_training_kernels()
    if kernels is None:
        pytest.skip("no C compiler on this machine")
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
