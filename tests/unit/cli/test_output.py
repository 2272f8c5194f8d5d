import json
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"), (119.4, "119 s"), (119.6, "2 min"), (120, "2 min"),
        (3569, "59 min"), (3571, "1 h"),
        (5400, "1 h 30 min"), (100_000, "27 h 47 min"),
    ],
)  # fmt: skip
def test_times_are_in_the_usual_units(seconds, shown):
    assert output.duration(seconds) == shown


def test_logs_go_to_stderr_once(capsys):
    output.configure_logging()
    output.configure_logging()
    logging.getLogger("elmokit.corpus").warning("2 lines skipped")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "elmokit: warning: 2 lines skipped\n"
