"""Commands whose standard streams are closed, or break."""

import json
import os
import subprocess
import sys

import pytest

from elmokit.cli.standard_streams import BROKEN_PIPE, open_standard_streams


def test_closed_streams_can_be_read_and_written_to(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    open_standard_streams()
    assert sys.stdin.read() == ""
    sys.stderr.write("message")
    sys.stderr.flush()
    assert not sys.stderr.isatty()
    for name in ("stdin", "stderr"):
        assert getattr(sys, name).name == os.devnull
        getattr(sys, name).close()


def test_without_standard_output_nothing_is_started(monkeypatch, capsys):
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as refused:
        open_standard_streams()
    assert refused.value.code == 2
    assert "standard output is closed" in capsys.readouterr().err
    sys.stdout.close()


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
@pytest.mark.parametrize("command", ["info", "embed"])
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


@pytest.mark.e2e
@pytest.mark.parametrize("words", [["--help"], ["info", "en"]])
@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [(">&-", 2, "closed"), (">/dev/full", 1, "No space left on device")],
)
def test_results_that_cannot_be_written_are_no_success(words, redirection, code, message):
    done = run(*words, close=redirection)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1)
    assert message in done.stderr


@pytest.mark.e2e
def test_nothing_is_written_when_the_report_of_it_would_be_lost(tmp_path):
    (tmp_path / "text.txt").write_text("one two\n" * 10)
    output = tmp_path / "vocab.txt"
    assert run("vocab", tmp_path / "text.txt", "-o", output, close=">&-").returncode == 2
    assert not output.exists()
    assert run("vocab", tmp_path / "text.txt", "-o", output, close=">/dev/full").returncode == 1
    assert "two" in output.read_text().split()


@pytest.mark.e2e
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("words", [["--help"], ["tokenize", "en"]])
def test_a_reader_that_has_enough_ends_the_command_quietly(words, encoding, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("one two three\n" * 5000)
    code = "import sys; from elmokit.cli import main; main()"
    arguments = [*words, *([] if words == ["--help"] else [str(text)])]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (BROKEN_PIPE, "")


@pytest.mark.e2e
def test_json_lines_are_valid_also_where_the_terminal_cannot_write_the_words():
    code = "import sys; from elmokit.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "surprisal", "en", "--json", "--text", "café 😀"],
        capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "cp949"},
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.decode("ascii").splitlines()]
    assert [row["word"] for row in rows][:2] == ["café", "😀"]
