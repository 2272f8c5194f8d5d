"""`elmokit` commands, as a user types them."""

import subprocess
import sys
from unittest import mock

from typer.testing import CliRunner


def elmokit(*arguments, given=None, expect=0, check_types=False):
    """Run a command in this process: a new one for each would take seconds to start.

    Args:
        arguments: The words after ``elmokit``.
        given: What standard input holds.
        expect: The exit code.
        check_types: Whether annotations are checked, which users' processes do not do.
    """
    import jaxtyping

    from elmokit import cli

    words = list(map(str, arguments))
    with (
        mock.patch.object(sys, "argv", ["elmokit", *words]),
        mock.patch.object(jaxtyping.config, "jaxtyping_disable", not check_types),
    ):
        done = CliRunner().invoke(cli.app, words, input=given)
    assert done.exit_code == expect, done.output
    assert "Traceback" not in done.stderr
    return done


def start_elmokit(*arguments, before="", **options):
    """Start a command in a process of its own, for tests of what a process is needed for.

    Args:
        arguments: The words after ``elmokit``.
        before: Python code that runs in that process before the command.
        options: Those of ``subprocess.Popen``.
    """
    code = f"{before}\nfrom elmokit.cli import main\nmain()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], text=True, encoding="utf-8", **options
    )
