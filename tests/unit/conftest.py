import pytest

from elmokit.inference import precision
from elmokit.kernels.inference import load_kernels


@pytest.fixture(params=["compiled", "pytorch"])
def backend(request, monkeypatch):
    """Run a test with the compiled kernels, and as on a machine without a compiler."""
    if request.param == "pytorch":
        monkeypatch.setattr(precision, "load_kernels", lambda: None)
    elif load_kernels() is None:
        pytest.skip("no C compiler on this machine")
    return request.param
