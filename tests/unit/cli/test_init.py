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
    assert (result.exit_code, result.stdout) == (0, "done x 4\n")
    assert result.stderr == "elmokit: working\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("",), 2, "KIND has an empty value"),  # it is not the working directory
        (("x", "--layers="), 2, "--layers has an empty value"),
        (("x", "--layer", "4"), 2, "--layers"),
        (("x", "--layers", "four"), 2, "valid integer"),
        (("x", "--color", "green"), 2, "Invalid value for '--color': 'green' is not one of"),
        ((), 2, "Missing argument"),
        (("wrong",), 2, "elmokit: error: `layers` must be 3."),
        (("absent",), 2, "elmokit: error: No such file or directory: a.txt"),
        (("full",), 1, "elmokit: error: the disk is full: could not write out.h5"),
        (("bug",), 1, "elmokit: error: RuntimeError: boom"),
        (("slip",), 1, "elmokit: error: ValueError: not enough values"),
        (("stop",), 130, "elmokit: interrupted"),
        (("term",), 143, "elmokit: stopped by SIGTERM after step 3.\n"),
    ],
)
def test_errors_have_a_message_and_a_code(run, arguments, code, message):
    result = run("demo", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_command_is_told_the_nearest(run):
    assert "Did you mean 'pretrain'" in run("pretrian").stderr


@pytest.mark.parametrize("arguments", [("--debug", "demo", "bug"), ("demo", "bug", "--debug")])
def test_debug_works_before_and_after_the_command(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


def test_version(run):
    import elmokit

    assert run("--version").stdout == f"elmokit {elmokit.__version__}\n"
