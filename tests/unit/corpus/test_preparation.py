"""From raw text to shards, vocabulary and held-out sentences."""

import os
import threading
from pathlib import Path

import pytest

from elmokit.corpus import text_shards
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
EVERY_WORD = VocabConfig(min_count=1)
TEXT = TextConfig(tokenizer=TokenizerConfig(name="whitespace"))


@pytest.fixture
def corpus(tmp_path):
    return write_text(tmp_path / "corpus.txt", SENTENCES)


@pytest.fixture
def run_dir(tmp_path):
    return tmp_path / "run"


def prepared(corpus, run_dir, *, text=TEXT, vocab=EVERY_WORD, valid=(), **settings):
    sources = find_text([corpus], valid)
    return prepare_text(sources, run_dir, text=text, vocab=vocab, normalization="NFC", **settings)


def words(shards):
    return sorted(" ".join(sentence) for sentence in shards.sentences())


class TestSplit:
    def test_every_sentence_is_trained_on_or_held_out(self, corpus, run_dir):
        made = prepared(corpus, run_dir)
        assert 0 < made.valid.num_sentences <= len(SENTENCES) // 10
        everything = [*made.shards.sentences(), *made.valid.sentences()]
        assert sorted(everything) == sorted(SENTENCES)

    def test_finished_shards_are_used_as_they_are(self, corpus, run_dir, tmp_path):
        shards = prepared(corpus, tmp_path / "earlier").shards
        made = prepared(shards.shard_dir, run_dir)
        assert made.shards.shard_dir == shards.shard_dir
        assert made.valid is None
        assert not (run_dir / "shards").exists()


class TestAgain:
    """A resumed run finds what the first one made."""

    @pytest.fixture
    def reads(self, monkeypatch):
        """The files that are read."""
        seen = []
        original = text_shards.read_text_lines

        def read(files, report, **options):
            seen.extend(files)
            return original(files, report, **options)

        monkeypatch.setattr(text_shards, "read_text_lines", read)
        return seen

    def test_nothing_is_read_twice(self, corpus, run_dir, reads):
        first = prepared(corpus, run_dir)
        reads.clear()
        second = prepared(corpus, run_dir)
        assert reads == []
        assert second.shards.fingerprint == first.shards.fingerprint
        assert words(second.valid) == words(first.valid)
        assert second.vocab == first.vocab

    def test_what_a_kill_left_unfinished_is_made_again(self, corpus, run_dir):
        first = prepared(corpus, run_dir)
        for path in (run_dir / "valid").iterdir():
            path.unlink()
        second = prepared(corpus, run_dir)
        assert words(second.valid) == words(first.valid)
        assert second.shards.fingerprint == first.shards.fingerprint


class Columns:
    """A reader of files with a word a line."""

    name = "columns"

    def read(self, path):
        for block in path.read_text(encoding="utf-8").split("\n\n"):
            yield block.split("\n")


class TestAnotherReader:
    @pytest.fixture
    def columns(self, tmp_path):
        path = tmp_path / "columns.txt"
        blocks = ["a b\ne\u0301", *(f"word{k}" for k in range(60))]
        path.write_text("\n\n".join(blocks), encoding="utf-8")
        return path

    def test_a_sentence_of_several_files_is_trained_on_or_held_out(
        self, columns, run_dir, tmp_path
    ):
        again = tmp_path / "again.txt"
        again.write_text("word7\n\n\u00e9\n\n" + columns.read_text("utf-8"), encoding="utf-8")
        sources = find_text([columns, again])
        made = prepare_text(
            sources, run_dir, text=TEXT, vocab=EVERY_WORD, normalization="NFC", reader=Columns()
        )
        everything = words(made.shards) + words(made.valid)
        assert sorted(everything) == sorted(
            {"a b \u00e9", "\u00e9", *(f"word{k}" for k in range(60))}
        )


class TestChangedText:
    """A resumed run must have the text that it began with."""

    @pytest.fixture
    def tree(self, tmp_path):
        (tmp_path / "tree" / "sub").mkdir(parents=True)
        for name in ("a.txt", "sub/b.txt"):
            write_text(tmp_path / "tree" / name, SENTENCES)
        return tmp_path / "tree"

    @pytest.fixture
    def check(self, tree, run_dir):
        prepared(tree, run_dir)

        def check(paths=tree):
            sources = find_text([paths], may_be_gone=True)
            check_same_text(open_text([paths], run_dir), sources, run_dir)

        return check

    def test_touched_and_gone_altogether_is_not_changed(self, check, tree):
        (tree / "a.txt").touch()
        check()
        check(tree / "gone.txt")

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("a.txt", lambda path: path.write_text("x" + path.read_text()[1:])),
            ("a.txt", lambda path: path.write_text("x" + path.read_text())),
            ("zz.txt", lambda path: path.write_text("new")),
            ("sub/b.txt", Path.unlink),
        ],
    )
    def test_files_that_change_come_or_go(self, check, tree, name, change):
        change(tree / name)
        with pytest.raises(ConfigError, match=rf"/{name} .*/run .*/run/shards"):
            check()


class TestFinishedShards:
    @pytest.fixture
    def shards(self, tmp_path):
        metadata = {"tokenizer": {"name": "whitespace", "version": "1"}, "normalization": "none"}
        return write_shards(SENTENCES, tmp_path / "finished", metadata=metadata)

    def test_another_tokenizer_is_a_contradiction(self, shards, run_dir):
        wanted = TokenizerConfig(name="whitespace", version="2")
        with pytest.raises(ConfigError, match=rf"whitespace 1.*{wanted.name}"):
            prepared(shards.shard_dir, run_dir, text=TextConfig(tokenizer=wanted))


class TestWhatIsRead:
    def test_standard_input_and_pipes_are_never_taken_from_an_earlier_attempt(self, tmp_path):
        """Nothing tells whether the text is the same."""
        run_dir, pipe = tmp_path / "run", tmp_path / "pipe"
        os.mkfifo(pipe)
        for word in ("river", "bank"):
            writer = threading.Thread(target=pipe.write_text, args=(f"the {word} .\n" * 60,))
            writer.start()
            made = prepared(pipe, run_dir)
            writer.join()
            assert {tuple(one) for one in made.shards.sentences()} == {("the", word, ".")}
