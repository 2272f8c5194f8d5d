import errno
import logging
import re
import sys
import types
from typing import Literal

import pytest
from typer.testing import CliRunner

import elmokit
from elmokit import cli
from elmokit.errors import InputError, MissingExtraError, Stopped


@pytest.fixture
def run(monkeypatch):
    """Run the command line with a stand-in for `elmokit demo`, which ends with `error`."""

    def run(*arguments, error=None):
        def demo(kind: str, *, layers: int = 3, color: Literal["red", "blue"] = "red") -> None:
            """Do as told."""
            if error is not None:
                raise error
            logging.getLogger("elmokit.demo").info("working")
            print(f"done {kind} {layers}")

        module = types.ModuleType("elmokit.cli.commands.demo")
        module.demo = demo  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "elmokit.cli.commands.demo", module)
        return CliRunner().invoke(cli.app, list(arguments))

    return run


def test_results_and_logs_take_different_streams(run):
    result = run("demo", "x", "--layers", "4")
    assert (result.exit_code, result.stdout) == (0, "done x 4\n")
    assert result.stderr == "elmokit: working\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("",), "empty value after 'demo'"),  # it is not the working directory
        (("x", "--layers="), "empty value after '--layers='"),
        (("x", "--layer", "4"), "--layers"),
        (("x", "--layers", "four"), "valid integer"),
        (("x", "--color", "green"), "Invalid value for '--color': 'green' is not one of"),
        ((), "Missing argument"),
    ],
)
def test_wrong_arguments_are_told(run, arguments, message):
    result = run("demo", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (InputError("`x` must be 3, got 4."), 2, "error: `x` must be 3"),
        (ValueError("shapes do not match"), 1, "error: ValueError: shapes"),
        (MissingExtraError("kiwipiepy", extra="ko"), 2, r"\[ko\]"),
        (FileNotFoundError(2, "No such file or directory", "a"), 2, r"error: .*: a\n"),
        (FileNotFoundError("no model named 'x'"), 2, "error: no model named 'x'"),
        (PermissionError(1, "Operation not permitted"), 1, "error: PermissionError"),
        (OSError(5, "Input/output error", "a"), 1, r"error: .*: a\n\(--debug"),
        (MemoryError(), 1, "error: out of memory.*ulimit"),
        (OSError(errno.ENOSPC, "No space left on device", "o.h5"), 1, r"No space left.*o\.h5"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "standard output"),
        (OSError(errno.EFBIG, "File too large", "o.h5"), 1, r"too large.*o\.h5\b"),
        (ValueError("write failed: No space left on device (os error 28)"), 1, "error: No space"),
        (KeyboardInterrupt(), 130, "elmokit: interrupted"),
        (Stopped("stopped by SIGTERM after step 3.", signal_number=15), 143, r"after step 3\.\n"),
    ],
)
def test_errors_have_a_message_and_a_code(run, error, code, words):
    result = run("demo", "x", error=error)
    assert (result.exit_code, result.stdout) == (code, "")
    assert re.search(words, result.stderr, re.DOTALL)
    assert "Traceback" not in result.stderr
    assert ("--debug" in result.stderr) == (code == 1)


def test_an_unknown_command_is_told_the_nearest(run):
    assert "Did you mean 'pretrain'" in run("pretrian").stderr


@pytest.mark.parametrize("arguments", [("--debug", "demo", "x"), ("demo", "x", "--debug")])
def test_debug_works_before_and_after_the_command(run, arguments):
    result = run(*arguments, error=RuntimeError("boom"))
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


def test_version(run):
    assert run("--version").stdout == f"elmokit {elmokit.__version__}\n"
