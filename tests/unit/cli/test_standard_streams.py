"""Commands whose standard streams are closed, or break."""

import os
import subprocess
import sys

import pytest

from elmokit.cli.standard_streams import BROKEN_PIPE, open_standard_streams

MAIN = "import sys; from elmokit.cli import main; main()"


def test_closed_streams_can_be_read_and_written_to(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    open_standard_streams()
    assert sys.stdin.read() == ""
    sys.stderr.write("message")
    sys.stderr.flush()
    for name in ("stdin", "stderr"):
        assert getattr(sys, name).name == os.devnull
        getattr(sys, name).close()


def run(*words, close):
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {close}', "sh", sys.executable, "-c", MAIN, *map(str, words)],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip


@pytest.mark.e2e
def test_no_file_gets_the_number_of_standard_error(tmp_path):
    (tmp_path / "text.txt").write_text("one two\n" * 10)
    output = tmp_path / "vocab.txt"
    done = run("vocab", tmp_path / "text.txt", "-o", output, close="2>&-")
    assert (done.returncode, "two" in output.read_text().split()) == (0, True)
    done = run("vocab", tmp_path / "gone.txt", "-o", output, "--overwrite", close="2>&-")
    assert done.returncode == 2


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("redirection", "code", "is_written"), [(">&-", 2, False), (">/dev/full", 1, True)]
)
def test_results_that_cannot_be_printed_are_no_success(tmp_path, redirection, code, is_written):
    (tmp_path / "text.txt").write_text("one two\n" * 10)
    output = tmp_path / "vocab.txt"
    done = run("vocab", tmp_path / "text.txt", "-o", output, close=redirection)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1)
    assert output.exists() == is_written


@pytest.mark.e2e
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_reader_that_has_enough_ends_the_command_quietly(encoding, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("one two three\n" * 5000)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "tokenize", "en", str(text)],
        stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (BROKEN_PIPE, "")
