import gzip
import lzma
import time

import pytest

from elmokit.errors import FormatError
from elmokit.files import lines
from elmokit.files.lines import (
    BadLine,
    decode_line,
    numbered_lines,
    raw_lines,
    read_text,
    split_lines,
)


def test_lines_across_pieces_are_joined():
    data = b"one\n\nthree three\nfour"
    for size in range(1, len(data) + 1):
        pieces = [data[i : i + size] for i in range(0, len(data), size)]
        assert list(split_lines(pieces, 8)) == [b"one", b"", None, b"four"]


def test_a_long_line_is_joined_in_linear_time():
    line = bytes(1 << 24)
    begin = time.process_time()
    pieces = (line[i : i + 1000] for i in range(0, len(line), 1000))
    assert list(split_lines(pieces, len(line))) == [line]
    assert time.process_time() - begin < 5  # 50 if each piece copied what was before it


def test_bad_lines_say_what_is_wrong_and_where():
    assert decode_line("한국어\r".encode()) == "한국어"
    assert decode_line(None) == BadLine("too_long")
    assert decode_line(b"a\0") == BadLine("nul", 1)
    assert decode_line(b"ab\xff") == BadLine("not_utf8", 2)


def test_a_byte_order_mark_and_empty_lines(write):
    assert list(raw_lines(write(""), 9)) == []
    assert list(raw_lines(write("\ufeff"), 9)) == [b""]
    assert list(raw_lines(write("\n\ufeffa"), 9)) == [b"", "\ufeffa".encode()]
    assert list(raw_lines(write("long\nb"), 2)) == [None, b"b"]


def test_a_line_that_is_too_long_is_an_error(write, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 8)
    with pytest.raises(FormatError, match=r"data\.txt, line 2: .* 8 bytes"):
        list(numbered_lines(write("a\n" + 9 * "b")))


def test_why_a_line_cannot_be_skipped_is_said(write):
    for content in (b"\0", b"\xff"):
        with pytest.raises(FormatError, match=r"line 1: .*Every line counts\."):
            list(numbered_lines(write(content), reason="Every line counts."))


class TestNumberedLines:
    TEXT = "하나\n\n둘 \n"

    @pytest.mark.parametrize("ending", ["\n", "\r\n"])
    def test_lines_have_numbers_and_no_ends(self, write, ending):
        path = write(self.TEXT.replace("\n", ending))
        assert list(numbered_lines(path)) == [(1, "하나"), (2, ""), (3, "둘 ")]

    @pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("xz", lzma.compress)])
    def test_compressed_text(self, write, suffix, compress):
        path = write(compress(self.TEXT.encode()), name=f"a.txt.{suffix}")
        assert [line for _, line in numbered_lines(path)] == ["하나", "", "둘 "]
        assert read_text(path) == self.TEXT

    def test_a_cut_compressed_file(self, write):
        path = write(lzma.compress(self.TEXT.encode() * 99)[:-20], name="a.txt.xz")
        with pytest.raises(FormatError, match=r"a\.txt\.xz: .*\.xz .*byte 0 "):
            list(numbered_lines(path))

    def test_only_line_feeds_end_lines(self, write):
        text = "a\u2028b\x0bc\x85d"
        assert list(numbered_lines(write(text))) == [(1, text)]

    @pytest.mark.parametrize(
        ("text", "is_told"),
        [
            ("one\rtwo\r", True),
            ("one\rtwo\n", True),
            ("one\r\ntwo\r\n", False),
            ("one\r\r\n", False),
            ("one\ntwo\rstill two\n", False),
        ],
    )
    def test_carriage_returns_that_may_end_lines_are_told(self, write, caplog, text, is_told):
        lines = [line for _, line in numbered_lines(write(text))]
        assert lines == [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
        assert [record.levelname for record in caplog.records] == ["WARNING"] * is_told
        for message in caplog.messages:
            assert "data.txt: line 1 " in message
            assert r"tr '\r' '\n'" in message

    def test_they_are_told_of_a_first_line_that_is_too_long(self, write, caplog):
        assert list(raw_lines(write("one\rtwo\rthree\r"), 5)) == [None]
        (message,) = caplog.messages
        assert "line 1 holds carriage returns" in message

    def test_a_byte_order_mark_is_taken_off_at_the_start_alone(self, write):
        path = write("\ufeffa\n\ufeffb\n")
        assert list(numbered_lines(path)) == [(1, "a"), (2, "\ufeffb")]
        assert read_text(path) == "a\n\ufeffb\n"

    def test_other_encodings_are_named(self, write):
        path = write("한국어\n".encode() + "안녕하세요 여러분 반갑습니다".encode("cp949"))
        with pytest.raises(FormatError, match=r"line 2: .*UTF-8 .*\b0; .*iconv -f CP949"):
            list(numbered_lines(path))
        with pytest.raises(FormatError, match=r"data\.txt: .*UTF-8 .*\b10\b.*iconv"):
            read_text(path)

    def test_nul_bytes(self, write):
        with pytest.raises(FormatError, match=r"line 2: .*NUL .*\b1, .*binary file.*tr -d"):
            list(numbered_lines(write("a\nb\0\n")))

    @pytest.mark.parametrize("order", ["BE", "LE"])
    @pytest.mark.parametrize("text", ["한국어는 어렵지 않다", "plain words"])
    def test_text_of_two_bytes_a_letter_is_named_with_its_byte_order(self, write, text, order):
        self.check_order(order, write((text + "\n").encode(f"UTF-16{order}")))

    def test_half_a_line_feed_at_the_start_of_a_line_is_none_of_its_letters(self, write):
        self.check_order("LE", write("\nplain words\n".encode("UTF-16LE")))

    def check_order(self, order, path):
        with pytest.raises(FormatError, match=rf"UTF-16{order}\. .*iconv -f UTF-16{order} "):
            list(numbered_lines(path))


@pytest.mark.parametrize("encoding", ["cp949", "utf-16-le", "latin-1"])
def test_the_encoding_of_a_long_line_is_guessed_from_a_part(write, encoding):
    letters = "caf\u00e9 d\u00e9j\u00e0 vu " if encoding == "latin-1" else "나는 강가에 앉았다 "
    data = (b"" if encoding == "utf-16-le" else 99_999 * b"a ") + (100_000 * letters).encode(
        encoding
    )
    name = {"cp949": "CP949", "utf-16-le": "UTF-16LE", "latin-1": "CP1252"}[encoding]
    path = write(data)
    begun = time.process_time()
    with pytest.raises(FormatError, match=f"it looks like {name}"):
        list(numbered_lines(path))
    assert time.process_time() - begun < 1.5  # 0.15 here
