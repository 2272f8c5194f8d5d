"""Fixtures of all tests, and the rules that hold before the first one runs.

Shape annotations of elmokit are checked by beartype through jaxtyping's import hook
(`--jaxtyping-packages` in pyproject.toml), which sees a module only if nothing imported it earlier:
fixtures import elmokit inside the fixture.
"""

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: parallel tests share the cores

import hypothesis
import pytest

hypothesis.settings.register_profile(
    "elmokit", derandomize=True, database=None, deadline=None, max_examples=25
)
hypothesis.settings.load_profile("elmokit")


def pytest_configure() -> None:
    """Hear Ctrl-C where a shell started us in the background: it has SIGINT ignored then."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")


@pytest.fixture
def without_type_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Annotations are not checked: for values of wrong types, and for tests of size.

    The latter would spend most of their time there; other tests run the same on less, with checks.
    """
    import jaxtyping

    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture
def repository_dir(pytestconfig: pytest.Config):
    """The root of the repository."""
    return pytestconfig.rootpath
