import errno
import logging
import sys
import types
from typing import Literal

import pytest
from typer.testing import CliRunner


@pytest.fixture
def run(monkeypatch):
    """Run the command line with a stand-in for the module of `elmokit demo`."""
    from elmokit import cli
    from elmokit.errors import InputError, Stopped

    def demo(kind: str, *, layers: int = 3, color: Literal["red", "blue"] = "red") -> None:
        """Do as told."""
        errors = {
            "wrong": InputError("`layers` must be 3."),
            "slip": ValueError("not enough values to unpack"),
            "absent": FileNotFoundError(2, "No such file or directory", "a.txt"),
            "full": OSError(errno.ENOSPC, "No space left on device", "out.h5"),
            "bug": RuntimeError("boom"),
            "stop": KeyboardInterrupt(),
            "term": Stopped("stopped by SIGTERM after step 3.", signal_number=15),
        }
        if kind in errors:
            raise errors[kind]
        logging.getLogger("elmokit.demo").info("working")
        print(f"done {kind} {layers}")

    module = types.ModuleType("elmokit.cli.commands.demo")
    module.demo = demo  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "elmokit.cli.commands.demo", module)
    return lambda *arguments: CliRunner().invoke(cli.app, list(arguments))


def test_results_and_logs_take_different_streams(run):
    result = run("demo", "x", "--layers", "4")
    assert result.exit_code == 0
    assert result.stdout == "done x 4\n"
    assert result.stderr == "elmokit: working\n"


@pytest.mark.parametrize(
    ("arguments", "name"),
    [(("",), "KIND"), (("x", "--layers="), "--layers"), (("x", "--layers", ""), "--layers")],
)
def test_an_empty_value_is_not_the_working_directory(run, arguments, name):
    result = run("demo", *arguments)
    assert result.exit_code == 2
    assert f"{name} has an empty value" in result.stderr


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("wrong", 2, "elmokit: error: `layers` must be 3."),
        ("absent", 2, "elmokit: error: No such file or directory: a.txt"),
        ("full", 1, "elmokit: error: the disk is full: could not write out.h5"),
        ("bug", 1, "elmokit: error: RuntimeError: boom"),
        ("slip", 1, "elmokit: error: ValueError: not enough values"),
        ("stop", 130, "elmokit: interrupted"),
        ("term", 143, "elmokit: stopped by SIGTERM after step 3.\n"),
    ],
)
def test_exit_codes(run, kind, code, message):
    result = run("demo", kind)
    assert result.exit_code == code
    assert result.stderr.startswith(message)
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("arguments", [("--debug", "demo", "bug"), ("demo", "bug", "--debug")])
def test_debug_works_before_and_after_the_command(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "Traceback" not in run("demo", "bug").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pretrian",), "Did you mean 'pretrain'"),
        (("demo", "x", "--layer", "4"), "--layers"),
        (("demo", "x", "--layers", "four"), "valid integer"),
        (("demo", "x", "--color", "green"), "Invalid value for '--color': 'green' is not one of"),
        (("demo",), "Missing argument"),
    ],
)
def test_usage_errors_help(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_version(run):
    import elmokit

    assert run("--version").stdout == f"elmokit {elmokit.__version__}\n"
