"""The compiled kernels as other processors have them, too."""

import ctypes
import platform

import pytest
import torch

from elmokit.native import build, training

PROCESSORS = {"this one": None, "256 bits": "-march=x86-64-v3", "128 bits": "-march=x86-64"}
"""Compiler flags that stand for other processors; this one must be able to run them."""


@pytest.fixture(params=list(PROCESSORS), scope="session")
def kernels(request, tmp_path_factory):
    """The library as each of the processors has it."""
    loaded = training.load_training_kernels()
    if loaded is None:
        pytest.skip("no C compiler on this machine")
    flag = PROCESSORS[request.param]
    if flag is None:
        return loaded
    if platform.machine() != "x86_64" or loaded.vector_length < 8:
        pytest.skip("this processor cannot stand for the other")
    patch = pytest.MonkeyPatch()
    with patch.context() as patched:
        patched.setattr(build, "NATIVE_FLAGS", ((flag,),))
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        library = ctypes.CDLL(str(build._build("training", build._compiler())))
    other = training.TrainingKernels(library)
    assert other.vector_length == {"256 bits": 8, "128 bits": 4}[request.param]
    assert not other.has_bf16
    return other


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
