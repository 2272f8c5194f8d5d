import pytest

from elmokit.config import read_toml
from elmokit.errors import FormatError
from elmokit.files import lines
from elmokit.files.json_files import read_json, write_json
from elmokit.files.lines import (
    csv_rows,
    numbered_lines,
    raw_lines,
    read_bounded,
    read_text,
    split_lines,
)
from elmokit.text.word_vocab import read_all_lines
from elmokit.weights.bilm_tf_options import read_options


def test_lines_across_pieces_are_joined():
    content = b"one\n\nthree three\nfour"
    for size in range(1, len(content) + 1):
        pieces = [content[i : i + size] for i in range(0, len(content), size)]
        assert list(split_lines(pieces, 8)) == [b"one", b"", None, b"four"]


@pytest.mark.parametrize(
    ("content", "limit", "expected"),
    [
        ("", 9, []),
        ("\ufeff", 9, []),
        ("\ufeffa\n\ufeffb", 9, [b"a", "\ufeffb".encode()]),
        ("long\nb", 2, [None, b"b"]),
        ("a\u2028b\x0bc\x85d", 99, ["a\u2028b\x0bc\x85d".encode()]),
    ],
)
def test_only_line_feeds_and_the_first_mark_are_taken_off(write, content, limit, expected):
    assert list(raw_lines(write(content), limit)) == expected


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"a\nb\0\n", ("line 2", "NUL", "byte 1", "iconv")),
        (b"a\n" + "한국어".encode("cp949"), ("line 2", "UTF-8", "byte 0", "iconv")),
        ("no\n".encode("UTF-16LE"), ("line 1", "iconv")),
        (b"a\n" + 9 * b"b", ("line 2", "8 bytes")),
    ],
)
def test_a_bad_line_is_an_error_with_its_place(write, content, parts, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 8)
    with pytest.raises(FormatError) as caught:
        list(numbered_lines(write(content)))
    for part in ("data.txt", *parts):
        assert part in str(caught.value)


def test_rows_of_tables_have_the_number_of_their_first_line(write):
    rows = csv_rows(write(""), ["a,b", '"1', '2",c', "d"])
    assert list(rows) == [(1, ["a", "b"]), (2, ["1\n2", "c"]), (4, ["d"])]
    with pytest.raises(FormatError, match=r"data\.txt, line 2: "):
        list(csv_rows(write(""), ["a,b", '"1', "2"]))


def blank(path, num_bytes=3 * 2**30):
    """A large file without blocks on disk."""
    with path.open("wb") as file:
        file.truncate(num_bytes)
    return path


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 3 * 2**30])
def test_files_up_to_the_size_are_read(tmp_path, size):
    path = blank(tmp_path / "a", size)
    if size <= 10:
        assert read_bounded(path, 10) == bytes(size)
    else:
        with pytest.raises(FormatError, match="a: larger than 10 bytes"):
            read_bounded(path, 10)


@pytest.mark.parametrize(
    "read",
    [lambda path: read_json(path, advice=""), read_options, read_toml, read_all_lines, read_text],
)
def test_every_reader_of_whole_files_refuses_what_is_too_large(tmp_path, read):
    with pytest.raises(FormatError, match="huge: larger than"):
        read(blank(tmp_path / "huge"))


def test_json_that_is_written_is_read(tmp_path):
    data = {"a": [1, 2.5, None], "문자": "é", "file": "\udcff.txt"}
    write_json(tmp_path / "a.json", data)
    assert read_json(tmp_path / "a.json", advice="", required=("a",)) == data
    assert "문자" in (tmp_path / "a.json").read_text("utf-8", errors="surrogatepass")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"a": ', ": .*JSON: "),
        (b"", ": .*JSON: "),
        (b'{"a": "\xff"}', ": .*JSON: "),
        (b"[" * 100_000, ": .*JSON: "),
        (b"[1]", ": .*JSON object.* list"),
        (b"{}", ": .*`a`"),
        (None, " "),
    ],
)
def test_damaged_json_names_the_file_and_what_to_do(tmp_path, write, content, what):
    path = tmp_path / "run.json" if content is None else write(content, name="run.json")
    with pytest.raises(FormatError, match=rf"/run\.json{what}.*Start a new run\."):
        read_json(path, advice="Start a new run.", required=("a",))
