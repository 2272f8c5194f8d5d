"""The compiled kernels as other processors have them, too; threads and signals."""

import signal

import pytest
import torch

from elmokit.kernels import training

from ...builders.processors import PROCESSORS, kernels_of


@pytest.fixture(params=list(PROCESSORS), scope="session")
def kernels(request, tmp_path_factory):
    """The library as each of the processors has it."""
    loaded = training.load_training_kernels()
    found = kernels_of(request.param, loaded, "training", tmp_path_factory)
    is_narrower = found.vector_length < loaded.vector_length
    assert found.has_bf16 == (loaded.has_bf16 and not is_narrower)
    return found


@pytest.fixture
def with_kernels(kernels, monkeypatch):
    """Training finds the kernels of one of the processors."""
    monkeypatch.setattr(training, "load_training_kernels", lambda: kernels)
    return kernels


@pytest.fixture
def without_kernels(monkeypatch):
    """Training finds no kernels."""
    monkeypatch.setattr(training, "load_training_kernels", lambda: None)


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


@pytest.fixture
def default_hangup():
    """SIGHUP is not ignored, as it is in what `nohup` starts."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
