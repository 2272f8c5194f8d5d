"""From raw text to shards, vocabulary and held-out sentences."""

import logging
import os
import threading
from pathlib import Path

import pytest

from elmokit.corpus import preparation as prepare
from elmokit.corpus import text_shards
from elmokit.corpus.preparation import (
    VocabConfig,
    check_same_text,
    find_text,
    open_text,
    prepare_text,
)
from elmokit.corpus.shards import ShardSet, write_shards
from elmokit.corpus.text_shards import TextConfig
from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import WordVocab

from ...builders.training_models import VOCAB, random_sentences, write_text

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


class TestProgress:
    def test_tells_the_words_of_every_stage(self, corpus, run_dir, monkeypatch):
        monkeypatch.setattr(text_shards, "SENTENCES_AN_EVENT", 10)
        events = []
        made = prepared(corpus, run_dir, on_preparation=events.append)
        stages = [event.stage for event in events]
        assert stages == sorted(stages, reverse=True)
        assert set(stages) == {"tokenizing", "counting words"}
        read = [event for event in events if event.stage == "tokenizing"]
        assert read[0].sentences == 10
        assert (read[-1].sentences, read[-1].total_words) == (len(SENTENCES), None)
        assert read[-1].words == sum(map(len, SENTENCES))
        assert events[-1].words == events[-1].total_words == made.shards.num_words


class TestSplit:
    def test_every_sentence_is_trained_on_or_held_out(self, corpus, run_dir):
        made = prepared(corpus, run_dir)
        assert 0 < made.valid.num_sentences <= len(SENTENCES) // 10
        everything = [*made.shards.sentences(), *made.valid.sentences()]
        assert sorted(everything) == sorted(SENTENCES)

    def test_given_validation_text_leaves_the_corpus_whole(self, corpus, run_dir, tmp_path):
        valid = write_text(tmp_path / "valid.txt", [["a", "boat"]])
        made = prepared(corpus, run_dir, valid=[valid])
        assert list(made.valid.sentences()) == [["a", "boat"]]
        assert made.shards.num_sentences == len(SENTENCES)

    def test_a_corpus_too_small_to_hold_anything_out_says_so(self, run_dir, tmp_path, caplog):
        made = prepared(write_text(tmp_path / "small.txt", SENTENCES[:3]), run_dir)
        assert made.valid is None
        assert "too small to hold anything out" in caplog.text
        assert made.shards.num_sentences == 3

    def test_finished_shards_are_used_as_they_are(self, corpus, run_dir, tmp_path):
        shards = prepared(corpus, tmp_path / "earlier").shards
        made = prepared(shards.shard_dir, run_dir)
        assert made.shards.shard_dir == shards.shard_dir
        assert made.valid is None
        assert not (run_dir / "shards").exists()

    @pytest.mark.parametrize("beside", ["corpus", "valid"])
    def test_finished_shards_are_not_read_as_text(self, corpus, tmp_path, beside):
        shards = prepared(corpus, tmp_path / "earlier").shards.shard_dir
        texts = {"corpus": [corpus], "valid": []}
        texts[beside].append(shards)
        with pytest.raises(InputError, match=r"earlier.shards holds finished shards"):
            find_text(**texts)

    def test_text_among_finished_shards_is_not_passed_over(self, corpus, tmp_path):
        prepared(corpus, tmp_path / "first")
        shards = tmp_path / "first/shards"
        (shards / "more.txt").write_text("a sentence\n", encoding="utf-8")
        with pytest.raises(InputError, match=r"more\.txt .*would not be read"):
            find_text([shards])

    def test_finished_shards_can_have_validation_text(self, corpus, run_dir, tmp_path):
        shards = prepared(corpus, tmp_path / "earlier").shards
        valid = write_text(tmp_path / "valid.txt", SENTENCES[:4])
        assert prepared(shards.shard_dir, run_dir, valid=[valid]).valid.num_sentences == 4


class TestVocabulary:
    def test_is_counted_from_the_training_text_by_falling_frequency(self, corpus, run_dir):
        made = prepared(corpus, run_dir)
        counts = {}
        for sentence in made.shards.sentences():
            for word in sentence:
                counts[word] = counts.get(word, 0) + 1
        frequencies = [counts[word] for word in made.vocab.words[3:]]
        assert set(made.vocab.words[3:]) == set(counts)
        assert frequencies == sorted(frequencies, reverse=True)

    def test_size_and_rarity_are_limited(self, corpus, run_dir):
        made = prepared(corpus, run_dir, vocab=VocabConfig(max_size=4, min_count=2))
        assert len(made.vocab) == 3 + 4

    def test_a_given_vocabulary_is_stored(self, corpus, run_dir):
        assert prepared(corpus, run_dir, fixed_vocab=VOCAB).vocab == VOCAB
        assert WordVocab.read(run_dir / "vocab.txt") == VOCAB

    @pytest.mark.parametrize("line", ["{}\t12", '"{}"', "▁{}", "x{}"])
    def test_one_without_the_words_of_the_text_is_refused(self, corpus, run_dir, line):
        lines = [word if word.startswith("<") else line.format(word) for word in VOCAB.words]
        lines = [word.replace("x<", "<") for word in lines]
        example = next(word for word in lines if any(map(str.isalpha, word)) and "<" not in word)
        with pytest.raises(FormatError, match=r"--vocab.*\d+\.\d%") as raised:
            prepared(corpus, run_dir, fixed_vocab=WordVocab(lines))
        assert repr(example) in str(raised.value)

    def test_an_empty_one_is_refused(self, corpus, run_dir):
        with pytest.raises(FormatError, match=r" 9999 .*vocab\.min_count=1"):
            prepared(corpus, run_dir, vocab=VocabConfig(min_count=9999))


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

    def test_another_text_replaces_shards_and_vocabulary(self, corpus, run_dir, tmp_path):
        prepared(corpus, run_dir)
        other = write_text(tmp_path / "other.txt", [[f"word{k}", "x"] for k in range(60)])
        made = prepared(other, run_dir)
        assert "word1" in made.vocab
        assert "river" not in made.vocab
        assert made.shards.num_sentences + made.valid.num_sentences == 60

    def test_held_out_sentences_come_back_where_validation_text_is_given(self, corpus, run_dir):
        prepared(corpus, run_dir)
        made = prepared(corpus, run_dir, valid=[corpus])
        assert made.shards.num_sentences == made.valid.num_sentences == len(SENTENCES)

    def test_other_files_stay(self, corpus, run_dir):
        (run_dir / "valid").mkdir(parents=True)
        (run_dir / "valid" / "mine.txt").write_text("kept")
        prepared(corpus, run_dir)
        prepared(corpus, run_dir, text=TextConfig(tokenizer=TEXT.tokenizer, tokens_per_shard=50))
        assert (run_dir / "valid" / "mine.txt").read_text() == "kept"

    def test_another_version_of_the_tokenizer_makes_the_shards_again(self, corpus, run_dir, reads):
        first, second = (
            TextConfig(tokenizer=TokenizerConfig(name="simple", version=version))
            for version in "12"
        )
        prepared(corpus, run_dir, text=first)
        reads.clear()
        prepared(corpus, run_dir, text=first)
        assert reads == []
        made = prepared(corpus, run_dir, text=second)
        assert reads == [corpus]
        assert made.shards.metadata["tokenizer"] == {"name": "simple", "version": "2"}

    @pytest.mark.parametrize("setting", [{"tokens_per_shard": 50}, {"field": "body"}])
    def test_another_setting_makes_the_shards_again(self, corpus, run_dir, reads, setting):
        prepared(corpus, run_dir)
        reads.clear()
        prepared(corpus, run_dir, text=TextConfig(tokenizer=TEXT.tokenizer, **setting))
        assert reads == [corpus]


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

    def test_words_stay_whole_and_are_normalized(self, columns, run_dir):
        made = prepared(columns, run_dir, reader=Columns(), valid=[columns])
        for shards in (made.shards, made.valid):
            assert shards.num_sentences == 61
            assert next(shards.sentences()) == ["a b", "\u00e9"]

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

    def test_its_shards_are_not_those_of_raw_text(self, columns, run_dir):
        first = prepared(columns, run_dir, reader=Columns())
        assert first.shards.metadata["reader"] == "columns"
        second = prepared(columns, run_dir)
        assert second.shards.metadata["reader"] is None
        assert second.shards.fingerprint != first.shards.fingerprint


class TestOpening:
    def test_text_is_opened_without_its_sources(self, corpus, run_dir):
        made = prepared(corpus, run_dir)
        corpus.unlink()
        found = open_text([corpus], run_dir)
        assert found.shards.fingerprint == made.shards.fingerprint
        assert words(found.valid) == words(made.valid)
        assert found.vocab == made.vocab

    def test_where_nothing_was_held_out_there_is_nothing_to_open(self, run_dir, tmp_path):
        small = write_text(tmp_path / "small.txt", SENTENCES[:3])
        prepared(small, run_dir)
        assert open_text([small], run_dir).valid is None

    def test_a_damaged_vocabulary_is_not_to_be_converted(self, corpus, run_dir):
        prepared(corpus, run_dir)
        (run_dir / "vocab.txt").write_bytes(b"<S>\n</S>\n<UNK>\nriver\nb\xe1nk\n")
        with pytest.raises(FormatError, match=r"/vocab\.txt, line 5: .*damaged: copy .* again\.$"):
            open_text([corpus], run_dir)

    def test_held_out_text_that_is_lost_is_missed(self, corpus, run_dir):
        prepared(corpus, run_dir)
        (run_dir / "valid" / "manifest.json").unlink()
        with pytest.raises(FileNotFoundError, match=r"/valid .*manifest\.json"):
            open_text([corpus], run_dir)


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

    def test_none_has_changed(self, check, tree):
        (tree / "a.txt").touch()
        check()

    def test_a_text_that_is_gone_altogether_has_not(self, check, tree):
        check(tree / "gone.txt")

    @pytest.mark.parametrize("same_length", [True, False])
    def test_other_contents_even_of_the_same_length(self, check, tree, same_length):
        text = (tree / "a.txt").read_text()
        (tree / "a.txt").write_text("x" + text[1 if same_length else 0 :])
        with pytest.raises(ConfigError, match=r"/a\.txt .*/run .*/run/shards"):
            check()

    def test_files_that_come_and_go(self, check, tree):
        (tree / "zz.txt").write_text("new")
        with pytest.raises(ConfigError, match=r"/zz\.txt .*/run/shards"):
            check()
        (tree / "zz.txt").unlink()
        (tree / "sub" / "b.txt").unlink()
        with pytest.raises(ConfigError, match=r"/b\.txt .*/run/shards"):
            check()

    def test_what_was_recorded_without_a_hash_is_compared_by_size(self, tree, run_dir):
        made = prepared(tree, run_dir)
        for source in made.shards.metadata["sources"]:
            source["sha256"] = None
        text = (tree / "a.txt").read_text()
        (tree / "a.txt").write_text("x" + text[1:])
        check_same_text(made, find_text([tree]), run_dir)
        (tree / "a.txt").write_text("x" + text)
        with pytest.raises(ConfigError, match=r"/a\.txt .*/run/shards"):
            check_same_text(made, find_text([tree]), run_dir)


class TestFinishedShards:
    @pytest.fixture
    def shards(self, tmp_path):
        metadata = {"tokenizer": {"name": "whitespace", "version": "1"}, "normalization": "none"}
        return write_shards(SENTENCES, tmp_path / "finished", metadata=metadata)

    def test_validation_text_is_split_as_they_were(self, shards, run_dir, tmp_path):
        valid = write_text(tmp_path / "valid.txt", [["don't", "e\u0301"]])
        made = prepared(shards.shard_dir, run_dir, text=TextConfig(), valid=[valid])
        assert list(made.valid.sentences()) == [["don't", "e\u0301"]]

    @pytest.mark.parametrize(
        "wanted",
        [
            TokenizerConfig(name="korean"),
            TokenizerConfig(name="simple"),
            TokenizerConfig(name="whitespace", version="2"),
        ],
    )
    def test_another_tokenizer_is_a_contradiction(self, shards, run_dir, wanted):
        message = rf"whitespace 1.*{wanted.name}.*raw text"
        with pytest.raises(ConfigError, match=rf"{message}.*`pretrain`"):
            prepared(shards.shard_dir, run_dir, text=TextConfig(tokenizer=wanted))
        text, of_model = TextConfig(tokenizer=wanted), {"normalization_is_fixed": True}
        with pytest.raises(ConfigError, match=rf"{message}.*a model that reads"):
            prepared(shards.shard_dir, run_dir, text=text, **of_model)

    def test_the_tokenizer_of_the_shards_may_be_named(self, shards, run_dir):
        made = prepared(shards.shard_dir, run_dir, text=TEXT)
        assert made.shards.fingerprint == shards.fingerprint

    def test_another_normalization_is_one_only_for_a_model(self, shards, run_dir):
        prepared(shards.shard_dir, run_dir)
        with pytest.raises(ConfigError, match=r"'none'.*'NFC'.*raw text"):
            prepared(shards.shard_dir, run_dir, normalization_is_fixed=True)

    def test_shards_that_are_gone_are_named(self, shards, run_dir):
        prepared(shards.shard_dir, run_dir)
        moved = shards.shard_dir.rename(shards.shard_dir.with_name("moved"))
        with pytest.raises(FileNotFoundError, match=rf"{shards.shard_dir}.*{run_dir}"):
            open_text([shards.shard_dir], run_dir)
        moved.rename(shards.shard_dir)
        assert open_text([shards.shard_dir], run_dir).shards.fingerprint == shards.fingerprint

    def test_they_are_not_replaced_by_those_of_an_earlier_preparation(
        self, shards, corpus, run_dir
    ):
        prepared(corpus, run_dir)
        prepared(shards.shard_dir, run_dir)
        shards.shard_dir.rename(shards.shard_dir.with_name("moved"))
        with pytest.raises(FileNotFoundError, match=str(shards.shard_dir)):
            open_text([shards.shard_dir], run_dir)

    def test_that_nothing_is_held_out_is_said(self, shards, run_dir, caplog):
        prepared(shards.shard_dir, run_dir)
        assert "nothing is held out" in caplog.text


def test_metadata_is_kept_with_the_shards(corpus, run_dir):
    prepared(corpus, run_dir)
    metadata = ShardSet.open(run_dir / "shards").metadata
    assert metadata["tokenizer"]["name"] == "whitespace"
    assert metadata["normalization"] == "NFC"
    assert metadata["sources"]


def test_counts_are_logged(corpus, run_dir, caplog):
    with caplog.at_level(logging.INFO, logger="elmokit"):
        prepared(corpus, run_dir)
    assert "120 lines read, 120 sentences" in caplog.text


def test_warm_text_is_training_sentences_of_ordinary_length(corpus, run_dir):
    """Not held-out ones: on those the model is scored, and a user's may be private."""
    made = prepared(corpus, run_dir)
    ordinary = [" ".join(words) for words in made.shards.sentences() if len(words) >= 5]
    assert made.warm_text() == tuple(ordinary[: prepare.WARM_SENTENCES])


@pytest.mark.parametrize(
    ("sentence", "tokenizer", "told"),
    [("나는 밥을 먹었다", "simple", True), ("I ate rice", "simple", False),
     ("나는 밥을 먹었다", "whitespace", False)],
)  # fmt: skip
def test_korean_that_is_split_at_spaces_is_told(
    run_dir, tmp_path, caplog, sentence, tokenizer, told
):
    corpus = write_text(tmp_path / "korean.txt", [sentence.split()] * 30)
    text = TextConfig(tokenizer=TokenizerConfig(name=tokenizer), valid_sentences=2)
    prepared(corpus, run_dir, text=text)
    assert ("--tokenizer korean" in caplog.text) == told


def test_more_sentences_may_hold_more_words(corpus, run_dir, monkeypatch):
    """The limit on words must not undo the setting."""
    made = []
    hold_out = text_shards.HoldOut
    monkeypatch.setattr(
        text_shards, "HoldOut", lambda **given: made.append(given) or hold_out(**given)
    )
    for number, most_words in ((2000, 100_000), (20_000, 1_000_000)):
        text = TextConfig(tokenizer=TokenizerConfig(name="whitespace"), valid_sentences=number)
        prepared(corpus, run_dir / str(number), text=text)
        assert made[-1]["max_sentences"] == number
        assert made[-1]["max_words"] == most_words


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

    def test_a_run_inside_its_corpus_is_no_part_of_it(self, corpus):
        run_dir = corpus.parent / "run"
        run_dir.mkdir()
        (run_dir / "README.md").write_text("a card", encoding="utf-8")
        sources = find_text([corpus.parent], run_dir=run_dir)
        assert [source["path"] for source in sources.corpus] == [str(corpus)]
        named = find_text([run_dir / "README.md"], run_dir=run_dir)
        assert len(named.corpus) == 1

    def test_standard_input_cannot_be_both_texts(self):
        with pytest.raises(InputError, match="--valid"):
            find_text([Path("-")], [Path("-")])


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (VocabConfig, "max_size"), (VocabConfig, "min_count"),
        (TextConfig, "tokens_per_shard"), (TextConfig, "valid_sentences"),
    ],
)  # fmt: skip
def test_numbers_below_one_are_refused(config, name):
    with pytest.raises(ConfigError, match=f"`{name}`"):
        config(**{name: 0})
