import gzip

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.vectors.vector_files import read_vectors

GLOVE = "the 0.5 1\n강 -1 2\nbank 3 4\nthe 9 9\n"


def write(tmp_path, text, name="vectors.txt"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_words_keep_their_vectors_and_the_first_of_two_counts(tmp_path):
    vectors = read_vectors(write(tmp_path, GLOVE))
    assert vectors.words == ["the", "강", "bank"]
    np.testing.assert_array_equal(vectors.values[vectors.id_of("강")], [-1, 2])
    np.testing.assert_array_equal(vectors.values[vectors.id_of("the")], [0.5, 1])


def test_a_word_is_looked_up_in_lower_case_too_and_unknown_ones_are_zero(tmp_path):
    vectors = read_vectors(write(tmp_path, GLOVE))
    assert vectors.id_of("Bank") == vectors.id_of("bank")
    assert vectors.id_of("river") == 1
    np.testing.assert_array_equal(vectors.values[:2], np.zeros((2, 2)))


def test_a_word2vec_header_is_passed_over(tmp_path):
    assert read_vectors(write(tmp_path, "4 2\n" + GLOVE)).words == ["the", "강", "bank"]


def test_only_wanted_words_are_kept(tmp_path):
    assert read_vectors(write(tmp_path, GLOVE), only=["Bank", "강"]).words == ["강", "bank"]
    assert read_vectors(write(tmp_path, GLOVE), only=["x"]).values.shape == (2, 2)


def test_compressed_files_are_read(tmp_path):
    path = write(tmp_path, gzip.compress(GLOVE.encode()), "vectors.txt.gz")
    assert read_vectors(path).dim == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 1 2\nbank 3\n", ", line 2: 1 .*'bank', .* 2 "),
        ("the one two\n", ", line 1: .*'the': .*'one'"),
        ("\n\n", ": "),
        ("the 1 2\nbank\n", ", line 2: .*'bank'"),
        ("# vectors\nthe 1 2\n", ", line 1: .*'#': .*'vectors'"),
        ("\nthe\t\n", ", line 2: .*'the'"),
        ("3 2\nthe 1 2\nbank\nriver 3 4\n", ", line 3: .*'bank'"),
        ("the 1 2\nbank nan 3\n", ", line 2: .*'bank' .*nan"),
        ("5 2\n" + GLOVE, ": .* 5 .* 4 "),
        ("3 2\n" + GLOVE, ": .* 3 .* 4 "),
        ("4 1\n" + GLOVE, r", line 2: 2 .*'the', .* 1\b"),
        ("4 3\n" + GLOVE, ", line 2: 2 .*'the', .* 3 "),
        ("4 0\n" + GLOVE, r", line 2: 2 .*'the', .* 0\b"),
    ],
)
def test_damage_is_told_with_its_line(tmp_path, text, message):
    with pytest.raises(FormatError, match=rf"/vectors\.txt{message}"):
        read_vectors(write(tmp_path, text))


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"/none\.txt"):
        read_vectors(tmp_path / "none.txt")


def test_words_with_blanks_are_read_whole(tmp_path):
    text = "at 1 2\nat name@domain.com 3 4\n. . . 5 6\n"
    vectors = read_vectors(write(tmp_path, text), only=["at", ". . ."])
    assert vectors.words == ["at", ". . ."]
    np.testing.assert_array_equal(vectors.values[2:], [[1, 2], [5, 6]])


def test_other_vectors_add_the_words_that_are_missing(tmp_path):
    few = read_vectors(write(tmp_path, GLOVE), only=["the"])
    more = read_vectors(write(tmp_path, "the 7 7\nbank 3 4\n", "more.txt"))
    both = few.extended(more)
    assert both.words == ["the", "bank"]
    np.testing.assert_array_equal(both.values[2:], [[0.5, 1], [3, 4]])


def test_after_a_header_a_word_may_have_blanks_too(tmp_path):
    vectors = read_vectors(write(tmp_path, "2 2\n. . . 1 2\nNew York 3 4\n"))
    assert vectors.words == [". . .", "New York"]


def test_blank_lines_are_passed_over(tmp_path):
    vectors = read_vectors(write(tmp_path, "2 2\n\nthe 1 2\n  \r\nbank 3 4\n\n"))
    assert vectors.words == ["the", "bank"]


def test_damage_of_words_that_are_not_wanted_is_no_matter(tmp_path):
    vectors = read_vectors(write(tmp_path, "the 1 2\nbank nan 3\n"), only=["the"])
    assert vectors.words == ["the"]


@pytest.mark.parametrize("header", ["", "2 2\n", "2\t2\n"])
@pytest.mark.parametrize("between", [" ", "\t"])
def test_a_tab_may_follow_the_word(tmp_path, header, between):
    path = tmp_path / "vectors.txt"
    path.write_text(f"{header}the\t1{between}2\nNew York\t3{between}4\n", encoding="utf-8")
    read = read_vectors(path)
    assert read.words == ["the", "New York"]
    np.testing.assert_array_equal(read.values[2:], [[1, 2], [3, 4]])
