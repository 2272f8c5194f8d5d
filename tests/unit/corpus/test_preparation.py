"""From raw text to shards, vocabulary and held-out sentences; again in a resumed run."""

from dataclasses import replace
from pathlib import Path

import pytest

from elmokit.corpus.preparation import (
    VocabConfig,
    check_same_text,
    find_text,
    open_text,
    prepare_text,
)
from elmokit.corpus.shards import write_shards
from elmokit.corpus.text_shards import TextConfig
from elmokit.errors import ConfigError
from elmokit.text.tokenizers.registry import TokenizerConfig

from ...builders.training_models import random_sentences, write_text

SENTENCES = random_sentences(120)
TEXT = TextConfig(tokenizer=TokenizerConfig(name="whitespace"))


@pytest.fixture
def corpus(tmp_path):
    return write_text(tmp_path / "corpus.txt", SENTENCES)


@pytest.fixture
def run_dir(tmp_path):
    return tmp_path / "run"


def prepared(*corpus, to, text=TEXT, **settings):
    settings = {"vocab": VocabConfig(min_count=1), "normalization": "NFC"} | settings
    return prepare_text(find_text(corpus), to, text=text, **settings)


def words(shards):
    return sorted(" ".join(sentence) for sentence in shards.sentences())


def test_finished_shards_are_used_as_they_are(corpus, run_dir, tmp_path, caplog):
    shards = prepared(corpus, to=tmp_path / "earlier").shards
    made = prepared(shards.shard_dir, to=run_dir, text=replace(TEXT, field="body"))
    assert "--column) has no effect" in caplog.text
    assert made.shards.shard_dir == shards.shard_dir
    assert made.valid is None
    assert not (run_dir / "shards").exists()


def test_another_tokenizer_than_that_of_finished_shards_is_a_contradiction(run_dir, tmp_path):
    metadata = {"tokenizer": {"name": "whitespace", "version": "1"}, "normalization": "none"}
    shards = write_shards(SENTENCES, tmp_path / "finished", metadata=metadata)
    wanted = TextConfig(tokenizer=TokenizerConfig(name="whitespace", version="2"))
    with pytest.raises(ConfigError, match=r"whitespace 1.*whitespace"):
        prepared(shards.shard_dir, to=run_dir, text=wanted)


class Columns:
    """A reader of files with a word a line."""

    name = "columns"

    def read(self, path):
        for block in path.read_text(encoding="utf-8").split("\n\n"):
            yield block.split("\n")


def test_a_sentence_of_several_files_is_trained_on_or_held_out(run_dir, tmp_path):
    sentences = {"a b \u00e9", "\u00e9", *(f"word{k}" for k in range(60))}
    columns, again = tmp_path / "columns.txt", tmp_path / "again.txt"
    blocks = ["a b\ne\u0301", *(f"word{k}" for k in range(60))]
    columns.write_text("\n\n".join(blocks), encoding="utf-8")
    again.write_text("\n\n".join(["word7", "\u00e9", *blocks]), encoding="utf-8")
    made = prepared(columns, again, to=run_dir, reader=Columns())
    assert 0 < made.valid.num_sentences <= len(sentences) // 10
    assert sorted(words(made.shards) + words(made.valid)) == sorted(sentences)


@pytest.fixture
def tree(tmp_path):
    """A folder of text that was prepared for a run."""
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    for name in ("a.txt", "sub/b.txt"):
        write_text(tmp_path / "tree" / name, SENTENCES)
    prepared(tmp_path / "tree", to=tmp_path / "run")
    return tmp_path / "tree"


def check_text(path, run_dir):
    sources = find_text([path], may_be_gone=True)
    check_same_text(open_text([path], run_dir), sources, run_dir)


def test_text_that_is_touched_or_gone_altogether_is_not_changed(tree, run_dir):
    (tree / "a.txt").touch()
    check_text(tree, run_dir)
    check_text(tree / "gone.txt", run_dir)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a.txt", lambda path: path.write_text("x" + path.read_text()[1:])),
        ("a.txt", lambda path: path.write_text("x" + path.read_text())),
        ("zz.txt", lambda path: path.write_text("new")),
        ("sub/b.txt", Path.unlink),
    ],
    ids=["other letter", "longer", "new file", "removed"],
)
def test_files_that_change_come_or_go_are_named(tree, run_dir, name, change):
    change(tree / name)
    with pytest.raises(ConfigError, match=rf"/{name} .*/run .*/run/shards"):
        check_text(tree, run_dir)
