"""Word vectors in text and word2vec's binary form, and how words are looked up in them."""

import functools
import gzip
import tracemalloc

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.vectors.static_vectors import StaticVectors
from elmokit.vectors.vector_files import LaterWords, VectorsReference, read_vectors, write_vectors

WORDS = ["the", "강", "bank", "New\u00a0York"]
VALUES = np.array([[0.5, 1, -3], [-1, 2, 1e-8], [3, 4, 0.1], [7, -7, 1e20]], dtype=np.float32)
GLOVE = "the 0.5 1\n강 -1 2\nbank 3 4\nthe 9 9\n"


def binary(words, values, *, line_feed=b"\n", header=None):
    """word2vec's binary form, written out by hand."""
    rows = np.asarray(values, dtype="<f4")
    header = header or f"{len(words)} {rows.shape[1]}"
    return header.encode() + b"\n" + b"".join(
        word.encode() + b" " + row.tobytes() + line_feed
        for word, row in zip(words, rows, strict=True)
    )  # fmt: skip


@pytest.fixture
def written(write):
    return functools.partial(write, name="vectors.bin")


def check(vectors, words=WORDS, values=VALUES):
    assert vectors.words == words
    np.testing.assert_array_equal(vectors.values[2:], values)
    assert not vectors.values[:2].any()


@pytest.mark.parametrize(
    ("name", "line_feed"), [("vectors.bin", b"\n"), ("vectors.txt", b""), ("vectors.gz", b"\n")]
)
def test_binary_files_are_known_by_their_content(written, line_feed, name):
    content = binary(WORDS, VALUES, line_feed=line_feed)
    content = gzip.compress(content) if name.endswith("gz") else content
    check(read_vectors(written(content, name=name)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GLOVE, ["the", "강", "bank"]),
        ("4 2\n" + GLOVE, ["the", "강", "bank"]),
        ("at 0.5 1\nat name@domain.com -1 2\n. . . 3 4\n", ["at", "at name@domain.com", ". . ."]),
        ("3 2\n. . . 0.5 1\nNew York -1 2\nx 3 4\n", [". . .", "New York", "x"]),
        ("3 2\n\na 0.5 1\n  \r\nb -1 2\nc 3 4\n\n", ["a", "b", "c"]),
        ("a\t0.5 1\nNew York\t-1\t2\nc 3 4\n", ["a", "New York", "c"]),
        ("3\t2\na\t0.5 1\nNew York\t-1\t2\nc 3  4\n", ["a", "New York", "c"]),
    ],
)
@pytest.mark.parametrize("name", ["vectors.bin", "vectors.gz"])
def test_text_is_read_with_blanks_in_words_with_tabs_and_blank_lines(written, text, words, name):
    content = gzip.compress(text.encode()) if name.endswith("gz") else text
    check(read_vectors(written(content, name=name)), words, [[0.5, 1], [-1, 2], [3, 4]])


@pytest.mark.parametrize("line_feed", [b"", b"\n"])
@pytest.mark.parametrize("seed", range(5))
def test_a_binary_file_with_a_blank_in_a_word_is_refused(written, line_feed, seed):
    values = np.random.default_rng(seed).normal(size=(5, 50))
    path = written(binary(["a", "New York", "b", "c", "d"], values, line_feed=line_feed))
    with pytest.raises(FormatError, match=r"word with a blank|contains"):
        read_vectors(path)


def test_memory_holds_wanted_words_alone(written):
    words = [f"w{number}" for number in range(500)]
    path = written(binary(words, np.full((500, 10_000), 0.1)))
    tracemalloc.start()
    vectors = read_vectors(path, only=["w7", "w499"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert vectors.words == ["w7", "w499"]
    assert peak < 3_000_000 < path.stat().st_size


def test_words_are_looked_up_as_they_are_then_in_lower_case_then_in_plain_signs():
    words = ["the", "(", '"', "``", "n't"]
    vectors = StaticVectors(words, np.eye(5, dtype=np.float32))
    asked = ("the", "THE", "-LRB-", "“", "``", "N’T", "river")
    assert [vectors.id_of(word) for word in asked] == [2, 2, 3, 4, 5, 6, 1]
    assert "the" in vectors
    assert "THE" not in vectors
    check(vectors.first(2), words[:2], vectors.values[2:4])
    assert vectors.first(0).values.shape == (2, 5)
    more = vectors.first(1).extended(vectors.first(2))
    check(more, words[:2], vectors.values[2:4])


@pytest.mark.parametrize("form", ["binary", "text", "text without a header"])
@pytest.mark.parametrize(("word", "place"), [(b"", 1), ("강".encode()[:2], 0), (b"a\0", 3)])
def test_a_word_that_cannot_be_read_is_skipped_in_every_form(written, caplog, form, word, place):
    words = [b"the", "New\u00a0York".encode(), b"bank"]
    words.insert(place, word)
    if form == "binary":
        rows = [raw + b" " + VALUES[k].tobytes() for k, raw in enumerate(words)]
        content = b"4 3\n" + b"".join(rows)
    else:
        rows = [raw + b" %g %g %g\n" % tuple(VALUES[k]) for k, raw in enumerate(words)]
        header = b"4 3\n" if form == "text" else b""
        content = header + b"".join(rows)
    expected = [k for k in range(4) if k != place]
    check(read_vectors(written(content)), [words[k].decode() for k in expected], VALUES[expected])
    assert "1 of 4 words are not UTF-8 text" in caplog.text


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (binary(WORDS, VALUES)[:-5], "word 4"),
        (binary(WORDS, VALUES, header="5 3"), "word 5"),
        (binary(WORDS, VALUES, header="3 3"), "3 words of 3"),
        (binary(WORDS, VALUES, header="4 2"), "4 words of 2"),
        (binary(WORDS, VALUES, header="4 4"), ""),
        (binary(WORDS, VALUES, header="4 999999"), "999999"),
        (binary(WORDS, VALUES) + b"more", "b'more'"),
        (binary(["a", "b"], [[1, 2], [np.nan, 1]]), "'b' contains nan"),
        (b"a 1 2\nb 1 1e99\n", "'b' contains inf"), (b"\x80\x04\x95anything", "pickle"), (b"", ""),
        (b"the 1 2\nbank 3\n", "line 2"), (b"the one two\n", "line 1"),
        (b"3 2\nthe 1 2\nbank\nriver 3 4\n", "line 3"), ("5 2\n" + GLOVE, " 5 "),
        ("4 1\n" + GLOVE, "line 2"), ("4 3\n" + GLOVE, "line 2"),
    ],
)  # fmt: skip
def test_damage_is_told_with_its_place(written, content, place):
    with pytest.raises(FormatError, match=rf"/vectors\.bin.*{place}"):
        read_vectors(written(content))


@pytest.mark.parametrize(("name", "word"), [("v.BIN", "a b"), ("v.txt", "a\tb"), ("v.vec", "\0")])
def test_words_that_would_break_the_file_are_refused(tmp_path, name, word):
    with pytest.raises(ValueError, match="word vectors"):
        write_vectors(tmp_path / name, [word], VALUES[:1])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", ["gone", "another"])
def test_a_file_that_is_not_the_same_is_told_once_and_never_read(written, change, caplog):
    path = written(binary(WORDS, VALUES))
    words = LaterWords(VectorsReference.of(path))
    if change == "gone":
        assert words.find(["강"]).words == ["강"]
        path.unlink()
    else:
        written(binary(WORDS, VALUES + 1))
    assert words.find(["bank", "river"]) is None
    assert words.find(["the"]) is None
    (record,) = caplog.records
    assert "vectors.bin is gone or another file" in record.getMessage()
    assert "2 unseen words" in record.getMessage()
    with pytest.raises((FileNotFoundError, FormatError), match=r"vectors\.bin"):
        words.read_all()
