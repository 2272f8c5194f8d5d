"""The compiled kernels as other processors have them, too; threads."""

import pytest
import torch

from elmokit.kernels import training

from ...builders.processors import PROCESSORS, kernels_of


@pytest.fixture(params=list(PROCESSORS))
def with_kernels(request, tmp_path_factory, monkeypatch):
    """Training finds the kernels as each of the processors has them."""
    loaded = training.load_training_kernels()
    kernels = kernels_of(request.param, loaded, "training", tmp_path_factory)
    is_narrower = kernels.vector_length < loaded.vector_length
    assert kernels.has_bf16 == (loaded.has_bf16 and not is_narrower)
    monkeypatch.setattr(training, "load_training_kernels", lambda: kernels)
    return kernels


@pytest.fixture
def on_threads():
    """Run a function on so many threads."""

    def run(count, function):
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            return function()
        finally:
            torch.set_num_threads(before)

    return run
