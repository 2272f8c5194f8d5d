"""The recipe that joins annotated names of several corpora."""

import gzip
import importlib.util
import sys
from pathlib import Path

import pytest

from elmokit.tasks.formats.conll import read_columns

RECIPE = Path(__file__).parents[2] / "recipes/annotated_names.py"
TWEETS = (
    "@\tB-PER\nminji\tB-PER\nmet\tO\nAnna\tB-PER\nBell\tI-PER\n\n"
    "no\tO\nnames\tO\n\n#oslo\tB-LOC\n\n"
)
POSTS = "Galaxy\tB-product\nby\tO\nSamsung\tB-corporation\n\nWembley\tB-location\n"


def join(monkeypatch, output, *directories):
    spec = importlib.util.spec_from_file_location("annotated_names", RECIPE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", ["annotated_names.py", str(output), *map(str, directories)])
    module.main()
    return [(sentence.tokens, sentence.tags) for sentence in read_columns(output)]


def test_types_are_mapped_and_mentions_and_hashtags_are_no_names(monkeypatch, tmp_path, capsys):
    for name in ("tweets", "posts"):
        (tmp_path / name).mkdir()
    (tmp_path / "tweets/train.conll.gz").write_bytes(gzip.compress(TWEETS.encode()))
    (tmp_path / "tweets/dev.conll").write_text("I\tO\n", encoding="utf-8")
    (tmp_path / "tweets/test.conll").write_text("Oslo\tB-LOC\n", encoding="utf-8")
    (tmp_path / "posts/train.conll").write_text("Bell\tB-person\n", encoding="utf-8")
    (tmp_path / "posts/dev.conll").write_text(POSTS, encoding="utf-8")
    output = tmp_path / "names.conll"
    assert join(monkeypatch, output, tmp_path / "tweets", tmp_path / "posts") == [
        (("I",), ("O",)),
        (("@", "minji", "met", "Anna", "Bell"), ("O", "O", "O", "B-PER", "I-PER")),
        (("no", "names"), ("O", "O")),
        (("#oslo",), ("O",)),
        (("Galaxy", "by", "Samsung"), ("O", "O", "B-ORG")),
        (("Wembley",), ("B-LOC",)),
        (("Bell",), ("B-PER",)),
    ]
    assert "7 sentences" in capsys.readouterr().out


def test_a_directory_without_files_is_named(monkeypatch, tmp_path):
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        join(monkeypatch, tmp_path / "names.conll", tmp_path)
    assert not (tmp_path / "names.conll").exists()
