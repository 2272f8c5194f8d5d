"""Records from JSON lines, TSV and CSV."""

import gzip
import io
import os
import threading
from pathlib import Path

import pytest
from pydantic import BaseModel

from elmokit.errors import FormatError
from elmokit.tasks.formats.records import Record, read_records
from elmokit.wording import Location


def fields(path):
    return [(record.location.line, dict(record.fields)) for record in read_records(path)]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.jsonl", '{"a": 1}\n\n{"a": "나"}\n', [(1, {"a": 1}), (3, {"a": "나"})]),
        ("a.jsonl.gz", gzip.compress(b'{"a": 1}', mtime=0), [(1, {"a": 1})]),
        ("a.json", '\n{"a": 1}\n{"a": 2}\n', [(2, {"a": 1}), (3, {"a": 2})]),
        ("a.csv", "[id],text\n1,a\n", [(2, {"[id]": "1", "text": "a"})]),  # no JSON
        ("a.tsv", "{id}\ttext\n1\ta\n", [(2, {"{id}": "1", "text": "a"})]),
        ("a.tsv", 'id\ttext\n1\t"그는\n', [(2, {"id": "1", "text": '"그는'})]),  # no quotes
        ("a.csv", 'a,b\n\n1,"x, ""y""\nz"\n2,d\n',
         [(3, {"a": "1", "b": 'x, "y"\nz'}), (5, {"a": "2", "b": "d"})]),
        ("a.tsv", "a\tb\r\n1\tTrue\r\n", [(2, {"a": "1", "b": "True"})]),
        ("a.csv", "a,b\n1," + "long " * 40_000, [(2, {"a": "1", "b": "long " * 40_000})]),
        ("a.tsv", "a\tb\n", []),
        ("a.tsv", "\n \n", []),
    ],
)  # fmt: skip
def test_files_and_their_records(write, name, content, expected):
    assert fields(write(content, name=name)) == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"a": 1}\n{"a": 1\n', "line 2: Invalid JSON"),
        ("a.jsonl", '{"a": 1}\na\tb\n', "line 2: Invalid JSON"),
        ("a.jsonl", '{"a": 1}\n[1]\n', r"line 2: .*\[1\]"),
        ("a.jsonl", '{"a": 1}\n' + "[" * 99_999, "line 2: "),
        ("a.jsonl", '{"a": "x\\ud83d"}\n', "line 1: "),  # half a character is no text
        ("a.json", '\n[\n{"a": 1}\n]\n', "line 2: .*JSON lines.* jq "),
        ("a.tsv", "a\tb\n1\t2\n3\n", r"line 3: 1 .* 2 \(a, b\)"),
        ("a.tsv", "a\tb\n1\t2\t3\n", r"line 2: 3 .* 2 \(a, b\)"),
        ("a.tsv", "a\ta\n1\t2\n", "line 1: .*: a, a"),
        ("a.csv", 'a,b\n1,"2\n3,4\n', "line 2: .*comma"),
    ],
)
def test_damage_is_told_with_its_line(write, name, content, message):
    with pytest.raises(FormatError, match=rf"{name}, {message}"):
        fields(write(content, name=name))


class Slow(io.BytesIO):
    """Gives a line at a time, as a slow producer does."""

    def read(self, size=-1):
        return self.readline(size)


@pytest.mark.parametrize("content", [b'{"a": "1"}\n{"a": "2"}\n', b"a\n1\n2\n"])
def test_standard_input_and_pipes_are_read_once(content, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Slow(content)))
    expected = [{"a": "1"}, {"a": "2"}]
    assert [record.fields for record in read_records(Path("-"))] == expected
    path = tmp_path / "a.tsv"
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=[content], daemon=True).start()
    rows = []
    reader = threading.Thread(target=lambda: rows.extend(fields(path)), daemon=True)
    reader.start()
    reader.join(timeout=20)
    assert [row for _, row in rows] == expected


def record(value):
    return Record.from_json(f'{{"a": {value}, "b": 2}}', Location(path=Path("x.jsonl"), line=7))


@pytest.mark.parametrize(
    ("method", "value", "expected"),
    [
        ("text", '"x"', "x"), ("text", r'"x\ud83d\ude00"', "x😀"),
        ("integer", "7", 7), ("integer", '"7"', 7), ("integer", "-2", -2),
        ("truth", "true", True), ("truth", '"False"', False), ("truth", '"T"', True),
        ("label", '" pos "', "pos"), ("label", "1", "1"), ("label", '"-"', "-"),
        ("label", "null", None), ("label", '""', None),
    ],
)  # fmt: skip
def test_fields(method, value, expected):
    assert getattr(record(value), method)("a") == expected


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("text", "1"), ("text", "null"), ("text", "[]"),
        ("integer", '"seven"'), ("integer", "1.5"), ("integer", "null"), ("integer", '""'),
        ("truth", "null"), ("truth", "[]"), ("truth", '"maybe"'),
        ("label", "true"), ("label", "1.5"), ("label", "[]"),
    ],
)  # fmt: skip
def test_fields_of_another_type_are_named(method, value):
    with pytest.raises(FormatError, match=r"x\.jsonl, line 7: .*'a"):
        getattr(record(value), method)("a")


def test_missing_fields_name_those_there_and_labels_what_stands_for_none():
    with pytest.raises(FormatError, match=r"line 7: .*'text'; .*: a, b"):
        record(1).text("text")
    assert record('"-"').label("a", missing=("", "-")) is None


class Inner(BaseModel):
    numbers: list[int]


def test_a_model_names_the_place_of_what_is_wrong():
    class Model(BaseModel):
        a: list[Inner]

    assert record('[{"numbers": [1, 2]}]').as_model(Model).a[0].numbers == [1, 2]
    with pytest.raises(FormatError, match=r"line 7: .*'a\[0\]\.numbers\[1\]'.*'x'"):
        record('[{"numbers": [1, "x"]}]').as_model(Model)
