import numpy as np
import pytest

from elmokit.text.vocab_doctor import check_fit, check_vocab
from elmokit.text.word_counter import WordCounter
from elmokit.text.word_vocab import WordVocab

SPECIALS = ["<S>", "</S>", "<UNK>"]


@pytest.fixture
def check(write):
    """Check a vocabulary of these lines, with sentences or without."""

    def check(lines, *sentences):
        return check_vocab(write("".join(f"{line}\n" for line in lines)), *sentences)

    return check


@pytest.fixture(scope="module")
def corpus():
    """200 words; word i occurs about 1000 / i times."""
    rng = np.random.default_rng(0)
    words = [f"w{i:03d}" for i in range(200)]
    rng.shuffle(words)
    sentences = [[word] * (1000 // (i + 1)) for i, word in enumerate(words)]
    return words, sentences


def test_a_sound_vocabulary(check, corpus):
    words, sentences = corpus
    report = check([*SPECIALS, *words], sentences)
    assert report.errors == report.warnings == ()
    assert report.special_lines == {"<S>": 1, "</S>": 2, "<UNK>": 3}
    assert report.num_words == 203
    assert report.corpus.coverage == 1.0
    assert report.corpus.num_sentences == 200
    counts = [1000 // (i + 1) for i in range(200)]
    expected = pytest.importorskip("scipy.stats").spearmanr(range(200), [-one for one in counts])
    assert report.corpus.rank_correlation == pytest.approx(expected.statistic)


@pytest.mark.parametrize("line", ["{}\t12", "{} 12", '"{}",12', '"{}"', "{},12", "▁{}", "{}/NNG"])
def test_lines_that_are_more_than_a_word_are_errors(check, corpus, line):
    """However many marks of the text are words of the vocabulary."""
    words, sentences = corpus
    lines = [*SPECIALS, ".", *map(line.format, words)]
    report = check(lines, [[word] * 9 + ["."] for one in sentences for word in one])
    assert report.corpus.coverage == 0.1
    (error,) = report.errors
    for part in ("90", repr(lines[3]), repr(words[0])):
        assert part in error


def test_an_alphabetical_order_is_a_warning(check, corpus):
    words, sentences = corpus
    report = check([*SPECIALS, *sorted(words[3:])], sentences)
    assert report.errors == ()
    (order,) = report.warnings
    assert "not sorted by frequency" in order
    too_few_to_say = check([*SPECIALS, *sorted(words[:99])], sentences)
    assert not any("sorted" in warning for warning in too_few_to_say.warnings)


def test_missing_specials_and_repeated_words(check):
    report = check(["a", "<S>", "b", "<unk>", "a", "</S>", "b"])
    assert report.special_lines == {"<S>": 2, "</S>": 6, "<UNK>": None}
    assert "'a' (lines 1, 5)" in report.errors[-1]
    assert [error.split()[0] for error in report.errors] == ["<UNK>", "2"]
    assert "</S> not among the first three" in report.warnings[0]
    assert report.corpus is None


def test_words_longer_than_a_model_sees_are_counted(check):
    long = ["가" * 17, *(letter * 49 for letter in "abcdefghijklmno")]
    lines = [*SPECIALS, "x" * 48, *long]
    report = check(lines, [[long[0]] * 3 + ["x" * 48], [long[1], "unknown" * 9]])
    assert (report.num_words, report.max_bytes, report.num_truncated) == (20, 48, 16)
    assert report.truncated == tuple(long[:10])
    assert report.corpus.num_truncated == 5


def test_coverage_and_unknown_words(check):
    sentences = [["a", "x", "x", "<unk>"], ["a", "y", "b"]]
    corpus = check([*SPECIALS, "a", "b", "c"], iter(sentences)).corpus
    assert (corpus.num_words, corpus.num_unseen) == (7, 1)
    assert corpus.coverage == pytest.approx(3 / 7)
    assert corpus.frequent_unknown == (("x", 2), ("y", 1))


def test_a_vocabulary_of_another_tokenizer_is_a_warning(corpus, caplog):
    words, sentences = corpus
    with WordCounter() as counter:
        for sentence in sentences:
            counter.add(sentence)
        check_fit(WordVocab([*SPECIALS, *words]), counter)
        assert not caplog.messages
        check_fit(WordVocab([*SPECIALS, *words[:1], *words[2:], "it's"]), counter)
    (message,) = caplog.messages
    assert "lacks 1 of the 20 most frequent" in message
    assert f"'{words[1]}' (500)" in message
