import gzip
import lzma

import pytest

from elmokit.embed import numbered_lines as lines
from elmokit.embed.numbered_lines import NumberedLines
from elmokit.errors import FormatError


def write(path, content):
    path.write_bytes(content)
    return path


def test_blank_lines_are_lines_and_numbers_go_on_through_the_files(tmp_path):
    first = write(tmp_path / "a.txt", b"\xef\xbb\xbfone\r\n\n  \n")
    second = write(tmp_path / "b.txt", "배 를\u2028\x0bx".encode())
    text = NumberedLines([first, second])
    assert list(text) == [(0, "one"), (1, ""), (2, "  "), (3, "배 를\u2028\x0bx")]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_files_are_read(tmp_path, suffix, pack):
    path = write(tmp_path / f"a.txt{suffix}", pack(b"one\ntwo\n"))
    text = NumberedLines(path)
    assert list(text) == [(0, "one"), (1, "two")]
    assert text.total_bytes is None


def test_progress_reaches_the_size(tmp_path):
    text = NumberedLines(write(tmp_path / "a.txt", b"one\n\ntwo\n"))
    list(text)
    assert text.num_bytes == text.total_bytes == 9


def test_lines_across_pieces(tmp_path):
    long = b"x" * 700_000
    path = write(tmp_path / "a.txt", b"a\n" + long + b"\nb")
    assert [line for _, line in NumberedLines(path)] == ["a", long.decode(), "b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "fine\n오늘 아침 에는 안개 가 짙어서 버스 가 늦게 왔다\n".encode("cp949"),
            r"a\.txt, line 2: .*UTF-8 .*\b0.*iconv",
        ),
        (b"one\ntwo\nth\x00ree\n", r"a\.txt, line 3: .*NUL .*\b2"),
    ],
)
def test_a_bad_line_stops_with_file_and_number(tmp_path, content, message):
    text = iter(NumberedLines(write(tmp_path / "a.txt", content)))
    with pytest.raises(FormatError, match=message):
        list(text)


def test_the_number_of_a_bad_line_is_that_in_its_file(tmp_path):
    first = write(tmp_path / "a.txt", b"one\ntwo\n")
    second = write(tmp_path / "b.txt", b"three\n\xff\xffoops\n")
    with pytest.raises(FormatError, match=r"b\.txt, line 2"):
        list(NumberedLines([first, second]))


def test_endless_lines_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1000)
    with pytest.raises(FormatError, match=r"a\.txt, line 1: .* bytes"):
        list(NumberedLines(write(tmp_path / "a.txt", b"x" * 2000)))


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.jsonl", b'{"body": "one\\ntwo"}\n\n{"body": ""}\n', ["one\ntwo", ""]),
        ("a.csv", b'id,body\n1,"one, two"\n\n2,\n', ["one, two", ""]),
        ("a.tsv", b"id\tbody\n1\tone\n", ["one"]),
    ],
)
def test_a_record_is_a_line(tmp_path, name, content, texts):
    rows = NumberedLines(write(tmp_path / name, content), text_field="body")
    assert [text for _, text in rows] == texts


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"body": "a"}\n{"id": 1}\n', "line 2: no string.*'body'.* id"),
        ("a.tsv", b"body\tid\n", None),
        ("a.tsv", b"id\tbody\n1\tx\n2\n", "line 3: no string"),
    ],
)
def test_a_record_without_text_stops_the_job(tmp_path, name, content, message):
    rows = NumberedLines(write(tmp_path / name, content), text_field="body")
    if message is None:
        assert list(rows) == []
        return
    with pytest.raises(FormatError, match=message):
        list(rows)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere"):
        NumberedLines(tmp_path / "nowhere.txt")
