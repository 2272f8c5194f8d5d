from pathlib import Path
from types import SimpleNamespace

import pytest

from elmokit import wording
from elmokit.wording import Location, counted, quoted, shown

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


def test_long_values_are_cut_in_messages():
    assert shown("short") == "'short'"
    assert shown("x" * 999) == "'" + "x" * 55 + "...'"
    assert shown([0] * 99).endswith(", 0...]")


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 shards"), (1, "1 shard"), (2, "2 shards"), (1000, "1,000 shards")]
)
def test_one_thing_is_not_told_in_the_plural(number, told):
    assert counted(number, "shard") == told


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
