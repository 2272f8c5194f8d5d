"""`elmokit` commands, as a user types them."""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from unittest import mock

from typer.testing import CliRunner

from . import command_server


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
        options: As of `start_python`.
    """
    code = f"{before}\nfrom elmokit.cli import main\nmain()"
    return start_python(code, *arguments, **options)


def start_python(code, *arguments, **options):
    """Start a program that uses elmokit; on Linux it is forked from one that has imported PyTorch.

    Args:
        code: The program.
        arguments: Its words.
        options: ``stdout``, ``stderr`` and ``env`` as for ``subprocess.Popen``.
    """
    words = list(map(str, arguments))
    if sys.platform == "linux":
        return ForkedProcess(words, code, **options)
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], text=True, encoding="utf-8", **options
    )


def free_port():
    """Return a port of this machine on which nothing listens; another process may take it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@cache
def _server():
    """Start the process that is forked; it ends when this one does."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        server = subprocess.Popen([sys.executable, command_server.__file__], stdin=its)
    atexit.register(server.wait)
    atexit.register(ours.close)  # is called first
    return ours


class ForkedProcess:
    """As much of ``subprocess.Popen`` as tests use."""

    def __init__(self, words, code, *, stdout=None, stderr=None, env=None):
        message = {
            "words": words, "code": code, "folder": os.getcwd(),
            "environment": dict(os.environ if env is None else env),
        }  # fmt: skip
        self._report, report = os.pipe()
        given = [os.open(os.devnull, os.O_RDONLY), report]
        self.stdout, self.stderr = (self._stream(given, *one) for one in ((stdout, 1), (stderr, 2)))
        order = (given[0], *given[2:], report)
        socket.send_fds(_server(), [json.dumps(message).encode()], order)
        for file in given:
            os.close(file)
        self.returncode = None
        self.pid = int(self._read_line())

    @staticmethod
    def _stream(given, kind, number):
        """Add a file for the process to write to; return the one to read from, if it is a pipe."""
        if kind == subprocess.PIPE:
            reading, writing = os.pipe()
            given.append(writing)
            return open(reading, encoding="utf-8")
        is_null = kind == subprocess.DEVNULL
        given.append(os.open(os.devnull, os.O_WRONLY) if is_null else os.dup(number))
        return None

    def _read_line(self):
        line = b""
        while not line.endswith(b"\n"):
            read = os.read(self._report, 1)
            assert read, "the command's process was lost"
            line += read
        return line

    def poll(self):
        """Return the exit code, or None while it runs."""
        if self.returncode is None and select.select([self._report], [], [], 0)[0]:
            self.returncode = int(self._read_line())
            os.close(self._report)
        return self.returncode

    def wait(self, timeout=None):
        """Return the exit code when there is one."""
        if self.returncode is None and not select.select([self._report], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("elmokit", timeout)
        return self.poll()

    def send_signal(self, number):
        """Send it unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        """Kill it."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout=None):
        """Return what it writes, when it has ended."""
        pipes = (self.stdout, self.stderr)
        with ThreadPoolExecutor(2) as readers:
            written = [pipe and readers.submit(pipe.read) for pipe in pipes]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            found = tuple(one and one.result() for one in written)
        self.__exit__()
        return found

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for pipe in filter(None, (self.stdout, self.stderr)):
            pipe.close()
        self.wait()
