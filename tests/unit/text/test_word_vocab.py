import hashlib
import os

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.text.word_counter import WordCounter, build_vocab
from elmokit.text.word_vocab import WordVocab

SPECIALS = ["<S>", "</S>", "<UNK>"]


def test_ids_start_at_one_and_unknown_words_have_theirs():
    vocab = WordVocab([*SPECIALS, "the", "눈"])
    assert (vocab.sentence_begin_id, vocab.sentence_end_id, vocab.unknown_id) == (1, 2, 3)
    assert (vocab.word_id("the"), vocab.word_id("The")) == (4, vocab.unknown_id)
    assert len(vocab) == 5
    assert "눈" in vocab
    assert "the " not in vocab
    ids = vocab.encode(["눈", "?", "the", "</S>"])
    assert ids.dtype == np.int64
    assert ids.tolist() == [5, 3, 4, 2]
    assert vocab.encode([]).shape == (0,)
    anywhere = WordVocab(["a", "</S>", "<S>", "b", "<UNK>"])
    assert (anywhere.unknown_id, anywhere.sentence_begin_id) == (5, 3)
    assert anywhere.frequent_words() == ["a", "b"]
    assert anywhere.decode([5, 1]) == ["<UNK>", "a"]
    for wrong in (0, 6, -1):
        with pytest.raises(ValueError, match=rf"word id {wrong} .*1 to 5"):
            anywhere.decode([1, wrong])
    again = WordVocab(list(anywhere.words))
    assert again == anywhere != vocab
    assert hash(again) == hash(anywhere)
    assert anywhere.sha256 == hashlib.sha256(b"a\n</S>\n<S>\nb\n<UNK>").hexdigest()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["<S>", "</S>", "the"], r"\w <UNK>: .*<S>, </S> .*elmokit vocab"),
        (["<s>", "</s>", "<unk>"], " <S>, </S>, <UNK>: .*elmokit vocab"),
        ([*SPECIALS, "a", "b", "a"], " 2 .*'a': .*elmokit vocab --check"),
        ([*SPECIALS, "a\nb"], r"\b4 .*'a\\nb'"),
        ([*SPECIALS, "x", "a\rb"], r"\b5 .*'a\\rb'"),
        ([*SPECIALS, ""], r"\b4 .*''"),
        ([*SPECIALS, " a"], r"\b4 .*' a'"),
        ([*SPECIALS, "\u3000 "], r"\b4 .*'\\u3000 '"),
        ([*SPECIALS, "\ud800"], r"\b4 .*'\\ud800'"),
        ([*SPECIALS, "!!!MAXTERMID"], r"\b4 .*'!!!MAXTERMID'"),
    ],
)
def test_bad_words_are_refused(words, message):
    with pytest.raises(ValueError, match=message):
        WordVocab(words)


@pytest.mark.parametrize("blank", ["\u3000", "\xa0", "\u2028", "\u2029", "\x85", "\u2003\u3000"])
def test_a_line_of_white_space_beyond_ascii_is_a_word_and_shifts_no_id(tmp_path, blank):
    path = tmp_path / "vocab.txt"
    path.write_bytes("\n".join([*SPECIALS, blank, f"x{blank}y", "last"]).encode())
    vocab = WordVocab.read(path)
    assert vocab.words == (*SPECIALS, blank, f"x{blank}y", "last")
    vocab.write(tmp_path / "again.txt")
    assert WordVocab.read(tmp_path / "again.txt") == vocab


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ", line 1: "),
        (b"<S>\n</S>\n\n<UNK>\n", ", line 3: "),
        (b"<S>\n</S>\n<UNK>\n\xc7\xd1\n", ", line 4: .*UTF-8"),
        (b"<S>\n<UNK>\na\n", ": .* </S>: .*elmokit vocab"),
    ],
)
def test_damaged_files_name_file_and_place(tmp_path, write, content, message):
    path = write(content, name="words.txt")
    with pytest.raises(FormatError, match=rf"/words\.txt{message}"):
        WordVocab.read(path)
    with pytest.raises(FileNotFoundError, match=r"no\.txt"):
        WordVocab.read(tmp_path / "no.txt")


def test_specials_and_impossible_lines_are_not_counted_as_words():
    with WordCounter(max_distinct=2) as counter:
        counter.add([*SPECIALS, "<unk>", "", " ", "a\n", "\ud800x", "!!!MAXTERMID", "a", "<Unk>"])
        assert counter.most_common() == [("<Unk>", 1), ("a", 1)]
        assert counter.num_words == 11


def test_spilled_counts_go_on_and_leave_nothing_behind(tmp_path, monkeypatch):
    """They equal those in memory: `tests/properties/test_round_trips.py`."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with WordCounter(max_distinct=25) as counter:
        counter.add([f"w{number}" for number in range(100)])
        assert len(counter.most_common()) == 100
        counter.add(["late"] * 10_000)
        assert counter.most_common(max_size=1) == [("late", 10_000)]
        counter.add_counts(["w7", "new"], [8, 9])
        assert counter.most_common(min_count=9) == [("late", 10_000), ("new", 9), ("w7", 9)]
        assert counter.num_words == 100 + 10_000 + 17
    assert not os.listdir(tmp_path)


def test_a_vocabulary_is_built_from_sentences():
    sentences = [["a", "b", "a"], ["<unk>", "c"]] + [["a", "b", "c"]] * 1999
    built = build_vocab(iter(sentences), max_size=2)
    assert built.vocab.words == (*SPECIALS, "a", "b")
    assert (built.num_sentences, built.num_words) == (2001, 6002)
    assert built.coverage == (2001 + 2000) / 6002
    with pytest.raises(FormatError, match="no word in this text"):
        build_vocab([])
    with pytest.raises(FormatError, match=r"\b9\b"):
        build_vocab([["a"]], min_count=9)
