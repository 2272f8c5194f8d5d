import pytest

from elmokit.inference import device, target_scores
from elmokit.kernels.library import load_kernels


@pytest.fixture(params=["compiled", "numpy"])
def backend(request, monkeypatch):
    """Run a test with the compiled kernels, and as on a machine without a compiler."""
    if request.param == "numpy":
        for module in (device, target_scores):
            monkeypatch.setattr(module, "load_kernels", lambda: None)
    elif load_kernels() is None:
        pytest.skip("no C compiler on this machine")
    return request.param


@pytest.fixture
def write(tmp_path):
    """Write text or bytes to a file and return its path."""

    def write(content, *, name="data.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write
