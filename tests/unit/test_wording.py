from pathlib import Path
from types import SimpleNamespace

import pytest

from elmokit import wording
from elmokit.wording import Location, quoted

PATH = Path("train.tsv")


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, "train.tsv"),
        ({"line": 7}, "train.tsv, line 7"),
        ({"part": "data[0]"}, "train.tsv, data[0]"),
        ({"line": 2, "part": "predicates[1]"}, "train.tsv, line 2, predicates[1]"),
    ],
)
def test_a_location_in_words(parts, text):
    assert str(Location(path=PATH, **parts)) == text
    assert str(Location(path=PATH, **parts).error("broken.")) == f"{text}: broken."


@pytest.mark.parametrize(
    ("system", "path", "word"),
    [
        ("posix", "my run", "'my run'"),
        ("posix", "runs/한국어", "'runs/한국어'"),
        ("nt", "C:\\runs\\one", "C:\\runs\\one"),
        ("nt", "C:\\my runs", '"C:\\my runs"'),
    ],
)
def test_paths_in_commands_are_quoted_for_the_shell(system, path, word, monkeypatch):
    monkeypatch.setattr(wording, "os", SimpleNamespace(name=system))
    assert quoted(Path(path)) == word
