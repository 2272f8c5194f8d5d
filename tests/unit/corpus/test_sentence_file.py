import unicodedata

import pytest

from elmokit.corpus.sentence_file import TokenizedCorpus, open_corpus, write_sentence_file
from elmokit.corpus.shards import write_shards
from elmokit.errors import ConfigError, FormatError
from elmokit.files.sources import describe_files
from elmokit.text.tokenizers.registry import TokenizerConfig


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("The cat sat. The dog sat.\n\nThe cat ran\n", encoding="utf-8")
    return path


def test_sentences_are_lines_and_words_are_counted(corpus, tmp_path):
    found = open_corpus([corpus])
    written = write_sentence_file(found, tmp_path / "aside.txt", max_words=100, min_count=2)
    assert list(written.lines()) == [
        ["The", "cat", "sat", "."],
        ["The", "dog", "sat", "."],
        ["The", "cat", "ran"],
    ]
    assert list(written.lines()) == list(written.lines())
    assert written.counts == {"The": 3, ".": 2, "cat": 2, "sat": 2}
    assert list(written.counts) == ["The", ".", "cat", "sat"]  # ties in code point order
    assert (written.num_sentences, written.num_words) == (3, 11)
    assert written.coverage == pytest.approx(9 / 11)
    assert found.tokenizer.name == "simple"
    assert found.tokenizer.version
    assert found.report.skipped == {"blank": 1}
    (described,) = found.describe()
    assert described["path"] == str(corpus)
    assert len(described["sha256"]) == 64


def test_long_sentences_go_on_in_the_next_line(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("a b c d e f g\nh\n", encoding="utf-8")
    found = open_corpus([path], tokenizer="whitespace")
    written = write_sentence_file(found, tmp_path / "aside.txt", max_words=3)
    assert list(written.lines()) == [["a", "b", "c"], ["d", "e", "f"], ["g"], ["h"]]
    assert (written.num_sentences, written.num_words) == (2, 8)


@pytest.mark.parametrize(
    ("words", "read"),
    [
        # tokens may hold what str.split() would take for a blank
        (["a\x1cb", "c\u00a0d", "e\u2028f", "g\r"], ["a\x1cb", "c\u00a0d", "e\u2028f", "g\r"]),
        (["il", "y", "a", "1 000", "mots"], ["il", "y", "a", "1", "000", "mots"]),
    ],
)
def test_words_are_divided_at_blanks_alone(tmp_path, words, read):
    corpus = TokenizedCorpus(
        sentences=iter([words]), num_words=None, tokenizer=TokenizerConfig(),
        normalization="plain-1", inputs=[],
    )  # fmt: skip
    file = write_sentence_file(corpus, tmp_path / "aside.txt", max_words=9)
    assert list(file.lines()) == [read]
    assert file.counts.keys() == set(read) - {"g\r"}  # no line of a vocabulary


def test_tokenizer_and_normalization_are_chosen(tmp_path):
    decomposed = unicodedata.normalize("NFD", "강물 didn't")
    path = tmp_path / "corpus.txt"
    path.write_text(decomposed, encoding="utf-8")
    raw = open_corpus([path], tokenizer=TokenizerConfig(name="whitespace"), normalization="none")
    assert list(raw.sentences) == [decomposed.split()]
    assert (raw.tokenizer.name, raw.normalization) == ("whitespace", "none")
    assert list(open_corpus([path]).sentences) == [["강물", "did", "n't"]]


def test_shards_of_a_run_are_taken_as_they_are(tmp_path, corpus):
    sources = describe_files([corpus])
    write_shards(
        [["already", "split."], ["twice"]],
        tmp_path / "shards",
        metadata={
            "tokenizer": {"name": "korean", "version": "kiwi"},
            "normalization": "none",
            "sources": sources,
        },
    )
    found = open_corpus([tmp_path / "shards"])
    assert (found.num_words, found.tokenizer.name, found.normalization) == (3, "korean", "none")
    assert found.describe() == sources
    assert {path.parent for path in found.inputs} == {tmp_path / "shards"}
    written = write_sentence_file(found, tmp_path / "aside.txt", max_words=10)
    assert list(written.lines()) == [["already", "split."], ["twice"]]
    with pytest.raises(ConfigError, match=r"/shards .*korean kiwi.* simple"):
        open_corpus([tmp_path / "shards"], tokenizer="simple")
    with pytest.raises(ConfigError, match=r"/shards .*korean kiwi.* whitespace"):
        open_corpus([tmp_path / "shards"], tokenizer=TokenizerConfig(name="whitespace"))
    newer = TokenizerConfig(name="korean", version="kiwi 2")
    with pytest.raises(ConfigError, match=r"/shards .*korean kiwi .*not .*korean kiwi 2"):
        open_corpus([tmp_path / "shards"], tokenizer=newer)
    assert open_corpus([tmp_path / "shards"], tokenizer="korean").tokenizer.version == "kiwi"


def test_shards_of_several_runs_are_read_one_after_another(tmp_path):
    made = {"tokenizer": {"name": "simple", "version": "1"}, "normalization": "NFC"}
    for name, sentences in (("a", [["one"]]), ("b", [["two", "words"], ["three"]])):
        write_shards(sentences, tmp_path / name, metadata=made | {"sources": [{"path": name}]})
    found = open_corpus([tmp_path / "b", tmp_path / "a"])
    assert found.num_words == 4
    assert [source["path"] for source in found.describe()] == ["b", "a"]
    assert list(found.sentences) == [["two", "words"], ["three"], ["one"]]
    write_shards([["x"]], tmp_path / "c", metadata=made | {"normalization": "plain-1"})
    with pytest.raises(ConfigError, match=r"/c .*plain-1.* NFC"):
        open_corpus([tmp_path / "a", tmp_path / "c"])
    newer = {"tokenizer": {"name": "simple", "version": "2"}}
    write_shards([["x"]], tmp_path / "d", metadata=made | newer)
    with pytest.raises(ConfigError, match=r"/d .*simple 2.*simple 1"):
        open_corpus([tmp_path / "a", tmp_path / "d"])


@pytest.mark.parametrize(
    ("tokenizer", "name"),
    [(None, "whitespace"), ({"name": "simple", "speed": 9}, "simple")],
)
def test_the_tokenizer_of_shards_may_be_unknown_or_have_other_settings(tokenizer, name, tmp_path):
    made = {"tokenizer": tokenizer, "normalization": None}
    write_shards([["x"]], tmp_path / "shards", metadata=made)
    found = open_corpus([tmp_path / "shards"])
    assert (found.tokenizer.name, found.normalization) == (name, "NFC")


def test_shards_and_text_together_are_refused(tmp_path, corpus):
    write_shards([["one"]], tmp_path / "shards")
    with pytest.raises(ConfigError, match=r"/shards .*/corpus\.txt "):
        open_corpus([corpus, tmp_path / "shards"])


def test_progress_is_told(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("a b\n" * 2500, encoding="utf-8")
    told = []
    found = open_corpus([path], tokenizer="whitespace")
    write_sentence_file(found, tmp_path / "aside.txt", max_words=10, on_words=told.append)
    assert told == [2000, 4000]


def test_a_corpus_without_frequent_words_is_told(tmp_path, corpus):
    with pytest.raises(FormatError, match=r" 9 .* 11 .*min_count"):
        write_sentence_file(
            open_corpus([corpus]), tmp_path / "aside.txt", max_words=10, min_count=9
        )


def test_wrong_input_is_told(tmp_path, corpus):
    with pytest.raises(FileNotFoundError, match=r"/none\.txt"):
        open_corpus([tmp_path / "none.txt"])
    with pytest.raises(ConfigError, match=r"'moses'.*whitespace, simple"):
        open_corpus([corpus], tokenizer="moses")
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    with pytest.raises(FormatError, match=r"/empty\.txt: .*UTF-8"):
        write_sentence_file(open_corpus([empty]), tmp_path / "aside.txt", max_words=10)
