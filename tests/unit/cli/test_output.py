import json
import logging
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from elmokit.cli import output
from elmokit.cli.output import BROKEN_PIPE


@dataclass(frozen=True)
class Report:
    path: Path
    scores: np.ndarray
    word: str


def test_json_is_one_object_on_stdout(capsys):
    report = Report(Path("a/b"), np.array([1.5, np.nan]), "눈")
    output.emit_json({"report": report, "count": np.int64(3), "best": float("inf"), "ok": True})
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        "report": {"path": "a/b", "scores": [1.5, None], "word": "눈"},
        "count": 3,
        "best": None,
        "ok": True,
    }
    assert captured.err == ""
    assert captured.out.count("\n") == 1


def test_logs_go_to_stderr_once(capsys):
    output.configure_logging()
    output.configure_logging()
    logging.getLogger("elmokit.corpus").warning("2 lines skipped")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "elmokit: warning: 2 lines skipped\n"


MAIN = "import sys; from elmokit.cli import main; main()"


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
    assert (done.returncode, "standard output" in done.stderr) == (code, True)
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


def test_progress_on_a_terminal_draws_one_bar_on_stderr(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with output.progress_bar("training") as progress:
        progress(5000, total=10_000, status="5,000 words", description="counting words")
        progress(0.25, total=1.0, status="loss 3.1", description="training")
    captured = capsys.readouterr()
    assert captured.out == ""
    last = captured.err[captured.err.rindex("training") :]
    assert "25%" in last
    assert "loss 3.1" in last
    assert "words" not in last
