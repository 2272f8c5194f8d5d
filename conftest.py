"""Fixtures of all tests, and the rules that hold before the first one runs.

Annotations of elmokit are checked by beartype through jaxtyping's import hook
(`--jaxtyping-packages` in pyproject.toml), which sees a module only if nothing imported it earlier:
fixtures import elmokit inside the fixture.
"""

import dataclasses
import functools
import gc
import inspect
import logging
import os
import signal
import typing

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: parallel tests share the cores

import beartype
import hypothesis
import jaxtyping
import pytest

hypothesis.settings.register_profile(
    "elmokit", derandomize=True, database=None, deadline=None, max_examples=25
)
hypothesis.settings.load_profile("elmokit")


def _may_have_shapes(annotation: object) -> bool:
    """Whether an annotation may name an array; annotations that are text are not resolved."""
    if isinstance(annotation, str | typing.ForwardRef):
        return True
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return issubclass(annotation, jaxtyping.AbstractArray)
    is_literal = typing.get_origin(annotation) is typing.Literal
    parts = annotation if isinstance(annotation, list) else typing.get_args(annotation)
    return not is_literal and any(map(_may_have_shapes, parts))


def check_on_call(function=None, *, typechecker, jaxtyped=jaxtyping.jaxtyped):
    """Decorate as `jaxtyping.jaxtyped`, with the same checks at less cost.

    Checks are made ready when a function is first called, as most never are. Those of a function
    without arrays need no record of dimensions, which takes longer than the checks.
    """
    if function is None:
        return functools.partial(check_on_call, typechecker=typechecker)
    if isinstance(function, classmethod | staticmethod):
        return type(function)(check_on_call(function.__func__, typechecker=typechecker))
    if inspect.isclass(function):
        if dataclasses.is_dataclass(function) and "__init__" in vars(function):
            function.__init__ = check_on_call(function.__init__, typechecker=typechecker)
        return function
    if not inspect.isfunction(function):
        return jaxtyped(function, typechecker=typechecker)
    checked = None

    @functools.wraps(function)
    def call(*arguments, **options):
        nonlocal checked
        if jaxtyping.config.jaxtyping_disable:
            return function(*arguments, **options)
        if checked is None:
            shapes = any(map(_may_have_shapes, function.__annotations__.values()))
            checked = jaxtyped(function, typechecker=typechecker) if shapes else PLAIN(function)
        return checked(*arguments, **options)

    return call


PLAIN = beartype.beartype(
    conf=beartype.BeartypeConf(is_pep484_tower=True, violation_type=jaxtyping.TypeCheckError)
)
jaxtyping.jaxtyped = check_on_call


def _no_fsync(descriptor: int) -> None:
    """Leave writing to the disk to the system: no test outlives a power failure.

    Waiting for the disk took 8 % of the time of the tests. Commands that tests start wait.
    """
    os.fstat(descriptor)  # as `os.fsync`, it refuses what is no open file


os.fsync = _no_fsync


def pytest_configure() -> None:
    """Hear Ctrl-C where a shell started us in the background: it has SIGINT ignored then."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Leave what is imported to the end of the tests out of garbage collection.

    Going through 750,000 such objects took a fifth of the processor time of collecting the tests,
    and a tenth of that of running 371 of them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


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


@pytest.fixture(autouse=True)
def log_level_of_no_other_test():
    """Undo what a command sets, or `caplog` of a later test would miss messages."""
    yield
    logging.getLogger("elmokit").setLevel(logging.NOTSET)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Skip files of tests that need PyTorch where it is not installed."""
    report = yield
    if report.failed and "No module named 'torch'" in str(report.longrepr):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, "Skipped: needs PyTorch")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Skip tests that need PyTorch where it is not installed."""
    report = yield
    error = call.excinfo and call.excinfo.value
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, "Skipped: needs PyTorch")
    return report
