"""How `elmokit info` shows values; the command itself is in tests/e2e."""

import shutil

import pytest

from elmokit.cli.commands.info import _print, _shown
from elmokit.cli.descriptions import describe
from elmokit.weights.locate import MODELS, TASK_RUNS


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1234567, "1,234,567"),
        (0.123456, "0.1235"),
        (12345.678, "12,346"),
        (True, "True"),
        (["a", "b"], "a, b"),
        ([[1, 32], [2, 64]], "[1, 32], [2, 64]"),
        (((0.9, 0.98765),), "[0.9, 0.9877]"),
        ({"path": "a.txt", "num_bytes": 20282}, "path a.txt, num_bytes 20,282"),
    ],
)
def test_values_as_people_read_them(value, shown):
    assert _shown(value) == shown


def test_files_have_a_line_each(capsys):
    _print({"files": [{"path": f"{number}.txt", "words": 1000} for number in range(12)]})
    first, second, *_, last = capsys.readouterr().out.splitlines()
    assert (first, second) == ("files", "  path 0.txt, words 1,000")
    assert last == "  … and 2 more"


@pytest.mark.parametrize("name", ["en", "pos-en"])
def test_a_folder_with_the_name_of_a_packaged_one_is_told(name, tmp_path, monkeypatch, caplog):
    kind = MODELS if name == "en" else TASK_RUNS
    shutil.copytree(kind.folder / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    describe(name)
    (message,) = caplog.messages
    assert f"not the packaged {kind.noun} {name!r}" in message
