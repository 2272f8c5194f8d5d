import gzip
import re
import tracemalloc

import numpy as np
import pytest

from elmokit.errors import FormatError, InputError
from elmokit.vectors import vector_files
from elmokit.vectors.static_vectors import StaticVectors
from elmokit.vectors.vector_files import (
    LaterWords,
    VectorsReference,
    read_vectors,
    read_vectors_of,
    write_vectors,
)

WORDS = ["the", "강", "bank", "New\u00a0York"]
VALUES = np.array([[0.5, 1, -3], [-1, 2, 1e-8], [3, 4, 0.1], [7, -7, 1e20]], dtype=np.float32)


def binary(words, values, *, line_feed=b"\n", header=None):
    """word2vec's binary form, written out by hand."""
    rows = np.asarray(values, dtype="<f4")
    header = header or f"{len(words)} {rows.shape[1]}"
    return header.encode() + b"\n" + b"".join(
        word.encode() + b" " + row.tobytes() + line_feed
        for word, row in zip(words, rows, strict=True)
    )  # fmt: skip


@pytest.fixture
def written(tmp_path):
    def write(content, name="vectors.bin"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def check(vectors):
    assert vectors.words == WORDS
    np.testing.assert_array_equal(vectors.values[2:], VALUES)


@pytest.mark.parametrize("line_feed", [b"\n", b""])
@pytest.mark.parametrize("name", ["vectors.bin", "vectors.txt", "vectors"])
def test_word2vec_binary_is_known_by_its_content(written, line_feed, name):
    check(read_vectors(written(binary(WORDS, VALUES, line_feed=line_feed), name)))


def test_compressed_files_are_read(written):
    check(read_vectors(written(gzip.compress(binary(WORDS, VALUES)), "vectors.bin.gz")))


@pytest.mark.parametrize("header", [b"", b"2 3\n"])
def test_text_is_known_by_its_content(written, header):
    vectors = read_vectors(written(header + "the 0.5 1 2\n강 1 2 3\n".encode(), "vectors.bin"))
    assert vectors.words == ["the", "강"]
    np.testing.assert_array_equal(vectors.values[2:], [[0.5, 1, 2], [1, 2, 3]])


def test_only_wanted_words_are_kept_in_lower_case_too(written):
    vectors = read_vectors(written(binary(WORDS, VALUES)), only=["BANK", "강", "river"])
    assert vectors.words == ["강", "bank"]
    np.testing.assert_array_equal(vectors.values[2:], VALUES[1:3])
    assert read_vectors(written(binary(WORDS, VALUES)), only=["x"]).values.shape == (2, 3)


def test_memory_holds_wanted_words_alone(written):
    words = [f"w{number}" for number in range(500)]
    path = written(binary(words, np.full((500, 10_000), 0.1)))
    assert path.stat().st_size > 20_000_000
    tracemalloc.start()
    vectors = read_vectors(path, only=["w7", "w499"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert vectors.words == ["w7", "w499"]
    assert peak < 3_000_000


def test_the_first_of_two_vectors_counts(written):
    vectors = read_vectors(written(binary(["a", "a"], [[1, 2], [3, 4]])))
    np.testing.assert_array_equal(vectors.values[2:], [[1, 2]])


CUT = "강".encode()[:2]


@pytest.mark.parametrize("form", ["binary", "text", "text without a header"])
@pytest.mark.parametrize(
    ("word", "fault"), [(b"", "empty: 1"), (CUT, "not UTF-8: 1"), (b"a\0", "with NUL: 1")]
)
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_word_that_cannot_be_read_is_skipped_in_every_form(
    written, caplog, form, word, fault, place
):
    words = [b"the", "New\u00a0York".encode(), b"bank"]
    words.insert(place, word)
    if form == "binary":
        rows = [raw + b" " + VALUES[k].tobytes() for k, raw in enumerate(words)]
        content = b"4 3\n" + b"".join(rows)
        position = f"byte {4 + sum(map(len, rows[:place]))}"
    else:
        rows = [raw + b" %g %g %g\n" % tuple(VALUES[k]) for k, raw in enumerate(words)]
        header = b"4 3\n" if form == "text" else b""
        content, position = header + b"".join(rows), f"line {place + 1 + len(header) // 4}"
    vectors = read_vectors(written(content))
    expected = [k for k in range(4) if k != place]
    assert vectors.words == [words[k].decode() for k in expected]
    np.testing.assert_allclose(vectors.values[2:], VALUES[expected])
    assert f"1 of 4 words cannot be read ({fault}), the first at {position};" in caplog.text


@pytest.mark.parametrize("suffix", [".bin", ".txt"])
@pytest.mark.parametrize("word", ["a\tb", "\t", "\u3000", "\u00a0", "\u200b"])
def test_words_of_odd_blanks_are_the_same_in_every_form(written, suffix, word):
    if suffix == ".bin":
        content = binary(["the", word], VALUES[:2])
    else:
        content = f"2 3\nthe 0.5 1 -3\n{word} -1 2 1e-8\n".encode()
    vectors = read_vectors(written(content, f"v{suffix}"))
    assert vectors.words == ["the", word]
    np.testing.assert_array_equal(vectors.values[2:], VALUES[:2])


@pytest.mark.parametrize("suffix", [".bin", ".txt"])
def test_a_file_of_words_that_cannot_be_read_is_refused(written, suffix):
    raw = "이것 강 이다 그리고 물 의 나라 이 가 을".encode("cp949").split()
    numbers = np.ones(3, "<f4").tobytes() if suffix == ".bin" else b"1 1 1\n"
    content = b"10 3\n" + b"".join(word + b" " + numbers for word in raw)
    with pytest.raises(FormatError, match=rf"v\{suffix}: 10 of 10 .*UTF-8: 10"):
        read_vectors(written(content, f"v{suffix}"))


@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.parametrize(
    "word", ["New York", "a b", "end ", " begin", "서울 특별시", "in spite of", "two  blanks"]
)
def test_a_blank_in_a_word_of_a_binary_file_is_told(written, word, place):
    words = ["the", "river", "강", "bank"]
    words.insert(place, word)
    values = np.random.default_rng(place).normal(size=(5, 20)) * 3
    for rows in (values, values.astype("f2"), values.round()):
        for line_feed, only in ((b"", None), (b"\n", ["nowhere"])):
            path = written(binary(words, rows, line_feed=line_feed))
            sizes = [len(one.encode()) + 81 + len(line_feed) for one in words[:place]]
            at = f"vectors.bin, byte {5 + sum(sizes)}: "
            with pytest.raises(FormatError, match=rf"{at}.*blank, '{word}'.*binary"):
                read_vectors(path, only=only)


def test_vectors_that_begin_with_text_and_a_blank_are_no_part_of_the_word(written):
    values = np.random.default_rng(0).normal(size=(2000, 7)).astype("<f4")
    raw = values.view(np.uint8).reshape(2000, 28)
    raw[::2, :2], raw[1::3, 0] = np.frombuffer(b"k ", np.uint8), ord(" ")
    words = [f"w{number}" for number in range(2000)]
    np.testing.assert_array_equal(read_vectors(written(binary(words, values))).values[2:], values)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (binary(WORDS, VALUES)[:-5], r", byte 66: .* 4 .* 4 .* 3\b"),
        (binary(WORDS, VALUES, header="5 3"), r", byte 78: .* 5 .* 5 "),
        (binary(WORDS, VALUES, header="3 3"), r", byte 55: .* 3 .* 3 "),
        (binary(WORDS, VALUES, header="4 2"), r", byte 74: .* 4 .* 2 "),
        (binary(WORDS, VALUES, header="4 4"), r", byte 66: .* [34] .* 4 "),
        (binary(WORDS, VALUES, header="4 999999"), r", line 1: .* 4 .* 999999"),
        (binary(WORDS, VALUES) + b"more", r", byte 78: .*b'more'"),
        (binary(["a", "b"], [[1, 2], [np.nan, 1]]), r", byte 15: .*'b' .*nan"),
        (binary(["a", "b"], [[1, -np.inf], [1, 1]]), r", byte 4: .*'a' .*-inf"),
        (b"a 1 2\nb 1 1e99\n", r", line 2: .*'b' .*inf"),
        (b"\x80\x04\x95anything", r".* pickle, .*gensim"),
        (b"", r": "),
        (b"\0\1\2\3 and so on\n", r", line 1: .*NUL .* 0\b"),
    ],
)
def test_damage_is_told(written, content, message):
    with pytest.raises(FormatError, match=rf"/vectors\.bin{message}"):
        read_vectors(written(content))


def test_a_width_that_does_not_fit_is_told_early(written):
    words = [f"w{number}" for number in range(1000)]
    values = np.random.default_rng(1).normal(size=(1000, 50))
    with pytest.raises(
        FormatError, match=r"/vectors\.bin: 101 of 112 .*UTF-8.*byte 207\..*1,000 .* 49 "
    ):
        read_vectors(written(binary(words, values, header="1000 49")))


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"/none\.bin"):
        read_vectors(tmp_path / "none.bin")


def test_standard_input_is_refused():
    with pytest.raises(InputError, match=r"^-: .*word vectors .* twice"):
        read_vectors("-")


@pytest.mark.parametrize("name", ["v.bin", "v.txt", "v.vec", "v.BIN"])
def test_what_is_written_is_read(tmp_path, name):
    write_vectors(tmp_path / name, WORDS, VALUES)
    check(read_vectors(tmp_path / name))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_binary_is_written_as_word2vec_has_it(tmp_path):
    write_vectors(tmp_path / "v.bin", WORDS, VALUES.astype(np.float64))
    assert (tmp_path / "v.bin").read_bytes() == binary(WORDS, VALUES)


def test_text_is_written_in_the_shortest_decimals(tmp_path):
    write_vectors(tmp_path / "v.txt", ["강"], np.array([[0.1, 2, 1e-8]], np.float32))
    assert (tmp_path / "v.txt").read_text("utf-8") == "1 3\n강 0.1 2.0 1e-08\n"


def test_a_suffix_without_a_form_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"v\.npz.*\.bin.*\.txt"):
        write_vectors(tmp_path / "v.npz", WORDS, VALUES)


def test_a_new_format_is_one_module_and_one_line(tmp_path, monkeypatch):
    class CsvFile:
        recognizes = staticmethod(lambda head: head.startswith(b"word,"))
        read = staticmethod(lambda stream, only: StaticVectors(["csv"], VALUES[:1]))

    monkeypatch.setattr(vector_files, "FORMATS", (CsvFile, *vector_files.FORMATS))
    (tmp_path / "v.csv").write_text("word,0,1\n")
    assert read_vectors(tmp_path / "v.csv").words == ["csv"]


@pytest.mark.parametrize("word", ["", "a b", "a\n", "\0"])
def test_words_that_would_break_the_file_are_refused(tmp_path, word):
    with pytest.raises(ValueError, match=f"^{re.escape(repr(word))} "):
        write_vectors(tmp_path / "v.bin", [word], VALUES[:1])
    assert list(tmp_path.iterdir()) == []


def test_a_tab_would_end_a_word_in_text_alone(tmp_path):
    for name in ("v.txt", "v.vec"):
        with pytest.raises(ValueError, match=r"'a\\tb' is not allowed"):
            write_vectors(tmp_path / name, ["a\tb"], VALUES[:1])
    write_vectors(tmp_path / "v.bin", ["a\tb"], VALUES[:1])
    assert read_vectors(tmp_path / "v.bin").words == ["a\tb"]


def test_the_number_of_rows_is_checked(tmp_path):
    with pytest.raises(ValueError, match=r"\b4 .*\(2, 3\)"):
        write_vectors(tmp_path / "v.bin", WORDS, VALUES[:2])


class TestLaterWords:
    def test_every_word_is_looked_up_once(self, written, monkeypatch):
        from elmokit.vectors import vector_files

        asked = []

        def read(path, *, only):
            asked.append(sorted(only))
            return read_vectors(path, only=only)

        monkeypatch.setattr(vector_files, "read_vectors", read)
        words = LaterWords(VectorsReference.of(written(binary(WORDS, VALUES))))
        found = words.find(["bank", "river"])
        assert found is not None
        assert found.words == ["bank"]
        assert words.find(["river", "bank"]) is None
        found = words.find(["river", "강"])
        assert found is not None
        np.testing.assert_array_equal(found.values[2:], VALUES[1:2])
        assert asked == [["bank", "river"], ["강"]]

    @pytest.mark.parametrize("change", ["gone", "another"])
    def test_a_file_that_is_not_the_same_is_told_once_and_never_read(self, written, change, caplog):
        path = written(binary(WORDS, VALUES))
        words = LaterWords(VectorsReference.of(path))
        if change == "gone":
            path.unlink()
        else:
            written(binary(WORDS, VALUES + 1))
        assert words.find(["bank", "river"]) is None
        assert words.find(["the"]) is None
        (record,) = caplog.records
        problem = "is gone" if change == "gone" else "is not the file that the run was trained with"
        assert f"vectors.bin {problem}: 2 unseen words" in record.getMessage()

    def test_a_file_that_goes_between_two_look_ups_is_told(self, written, caplog):
        path = written(binary(WORDS, VALUES))
        words = LaterWords(VectorsReference.of(path))
        assert words.find(["bank"]) is not None
        path.unlink()
        assert words.find(["the"]) is None
        assert "is gone: 1 unseen words" in caplog.text

    def test_a_missing_file_cannot_be_referred_to(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"/none\.bin"):
            VectorsReference.of(tmp_path / "none.bin")


class TestVectorsOfAText:
    def test_few_known_words_are_told(self, tmp_path, caplog):
        path = tmp_path / "vectors.txt"
        path.write_text("the 1\nbank 2\n", encoding="utf-8")
        with caplog.at_level("INFO"):
            assert read_vectors_of(path, ["the", "bank", "The", "shore"]).words == ["the", "bank"]
            read_vectors_of(path, ["the", "shore", "of", "the", "lake"])
        levels = [(record.levelname, record.getMessage()) for record in caplog.records]
        assert [(level, "75 %" in text) for level, text in levels] == [
            ("INFO", True), ("WARNING", False)
        ]  # fmt: skip
        assert "40 %" in levels[1][1]

    def test_none_at_all_are_an_error(self, tmp_path):
        path = tmp_path / "vectors.txt"
        path.write_text("the 1\n", encoding="utf-8")
        with pytest.raises(InputError, match=r"vectors\.txt .*none"):
            read_vectors_of(path, ["강", "물"])
        assert read_vectors_of(path, []).words == []
