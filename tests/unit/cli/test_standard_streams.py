"""Commands whose standard streams are closed, or break."""

import os
import subprocess
import sys

import pytest

from elmokit.cli import COMMANDS
from elmokit.cli.standard_streams import open_standard_streams


def test_closed_streams_can_be_read_and_written(monkeypatch):
    names = ("stdin", "stdout", "stderr")
    for name in names:
        monkeypatch.setattr(sys, name, None)
    open_standard_streams()
    assert sys.stdin.read() == ""
    sys.stdout.write("result")
    sys.stderr.write("message")
    sys.stderr.flush()
    assert not sys.stderr.isatty()
    for name in names:
        assert getattr(sys, name).name == os.devnull
        getattr(sys, name).close()


def test_messages_to_a_terminal_that_is_gone_are_dropped(monkeypatch):
    class Gone:
        encoding = "utf-8"

        def write(self, text):
            raise OSError("Input/output error")

        flush = write

        def __getattribute__(self, name):
            if name == "flush":
                return lambda: self.write("")
            return super().__getattribute__(name)

    monkeypatch.setattr(sys, "stderr", Gone())
    open_standard_streams()
    assert sys.stderr.write("message") == 7
    sys.stderr.flush()
    assert sys.stderr.encoding == "utf-8"


def run(*words, close):
    code = "import sys; from elmokit.cli import main; main()"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {close}', "sh", *map(str, command)],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip


@pytest.mark.e2e
@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_input_without_standard_error_is_still_exit_code_2(command):
    assert run(command, "--no-such-option", close="2>&-").returncode == 2


@pytest.mark.e2e
def test_no_file_gets_the_number_of_standard_error(tmp_path):
    (tmp_path / "text.txt").write_text("one two\n" * 10)
    output = tmp_path / "vocab.txt"
    done = run("vocab", tmp_path / "text.txt", "-o", output, close="2>&-")
    assert (done.returncode, "two" in output.read_text().split()) == (0, True)
    done = run("vocab", tmp_path / "gone.txt", "-o", output, "--overwrite", close="2>&-")
    assert done.returncode == 2
