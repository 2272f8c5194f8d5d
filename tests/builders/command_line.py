"""`elmokit` commands, as a user types them."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from unittest import mock

from typer.testing import CliRunner

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["torch._dynamo"])  # what every optimizer imports


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


def run_python(code, *arguments, **options):
    """Run a program in a new process of this Python; return it, with what it wrote, at its end."""
    words = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False, **options)


def free_port():
    """Return a port of this machine on which nothing listens; another process may take it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


RUN = """
import os, signal, sys
for number, stream in streams.items():
    os.dup2(stream.fileno(), number)
sys.stdout = open(1, "w", encoding="utf-8")
sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace")
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.clear()
os.environ.update(environment)
os.chdir(folder)
sys.argv = ["elmokit", *words]
exec(code, {"__name__": "__main__"})
"""
"""What the forked process does: a program with streams, environment and folder of its own."""


class ForkedProcess:
    """As much of ``subprocess.Popen`` as tests use."""

    def __init__(self, words, code, *, stdout=None, stderr=None, env=None):
        environment = dict(os.environ if env is None else env)
        self.stdout, output = self._stream(stdout, 1)
        self.stderr, errors = self._stream(stderr, 2)
        self._process = FORKS.Process(target=exec, args=(RUN, {
            "words": words, "code": code, "folder": os.getcwd(), "environment": environment,
            "streams": {1: output, 2: errors},
        }))  # fmt: skip
        self._process.start()
        output.close()
        errors.close()

    @staticmethod
    def _stream(kind, number):
        """Return the file to read from, if it is a pipe, and the one that the process writes to."""
        if kind == subprocess.PIPE:
            reading, writing = os.pipe()
            return open(reading, encoding="utf-8"), Connection(writing, readable=False)
        is_null = kind == subprocess.DEVNULL
        file = os.open(os.devnull, os.O_WRONLY) if is_null else os.dup(number)
        return None, Connection(file, readable=False)

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        """Return the exit code, or None while it runs."""
        return self.returncode

    def wait(self, timeout=None):
        """Return the exit code when there is one."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("elmokit", timeout)
        return self.returncode

    def send_signal(self, number):
        """Send it unless the process has ended."""
        if self.poll() is None:
            os.kill(self._process.pid, number)

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
