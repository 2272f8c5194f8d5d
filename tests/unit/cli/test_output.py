import json
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmokit.cli import output


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
