import pytest

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


def test_progress_reaches_the_size(tmp_path):
    text = NumberedLines(write(tmp_path / "a.txt", b"one\n\ntwo\n"))
    list(text)
    assert text.num_bytes == text.total_bytes == 9


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
