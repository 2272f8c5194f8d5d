"""Records from JSON lines, TSV and CSV."""

import gzip
import io
import json
import os
import re
import threading
from pathlib import Path

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.formats.records import Record, read_records


def shown(value):
    """The pattern of a JSON value as messages show it, which cut a long one."""
    return re.escape(repr(json.loads(value))[:20])


def fields(path):
    return [(record.location.line, dict(record.fields)) for record in read_records(path)]


@pytest.fixture
def record(write):
    """Make a record from JSON."""

    def make(json) -> Record:
        return next(iter(read_records(write(json, name="a.jsonl"))))

    return make


class Slow(io.BytesIO):
    """Gives a line at a time, as a slow producer does."""

    def read(self, size=-1):
        return self.readline(size)


class TestReadOnce:
    @pytest.mark.parametrize("content", [b'{"a": "1"}\n{"a": "2"}\n', b"a\n1\n2\n"])
    def test_standard_input(self, content, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Slow(content)))
        assert [record.fields for record in read_records(Path("-"))] == [{"a": "1"}, {"a": "2"}]

    def test_a_pipe(self, tmp_path):
        path = tmp_path / "a.tsv"
        os.mkfifo(path)
        threading.Thread(target=path.write_bytes, args=[b"a\n1\n"], daemon=True).start()
        found = []
        reader = threading.Thread(target=lambda: found.extend(fields(path)), daemon=True)
        reader.start()
        reader.join(timeout=20)
        assert found == [(2, {"a": "1"})]


class TestJsonLines:
    def test_one_object_a_line(self, write):
        path = write('{"a": 1}\n\n{"a": "나"}\n', name="a.jsonl")
        assert fields(path) == [(1, {"a": 1}), (3, {"a": "나"})]

    def test_compressed(self, write):
        path = write(gzip.compress(b'{"a": 1}'), name="a.jsonl.gz")
        assert fields(path) == [(1, {"a": 1})]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ('{"a": 1', r"JSON: .* 8\."),
            ("a\tb", r"JSON: .* 1\."),
            ("[1]", r"JSON object, .* \[1\]"),
            ("[" * 99_999, "JSON"),
            ("9" * 9_999, "JSON"),
        ],
    )
    def test_damaged_lines(self, write, line, message):
        with pytest.raises(FormatError, match=rf"a\.jsonl, line 2: .*{message}"):
            fields(write(f'{{"a": 1}}\n{line}\n', name="a.jsonl"))


class TestTables:
    def test_json_lines_with_another_suffix(self, write):
        assert len(list(read_records(write('\n{"a": 1}\n{"a": 2}\n', name="a.json")))) == 2

    @pytest.mark.parametrize(("name", "between"), [("a.csv", ","), ("a.tsv", "\t")])
    @pytest.mark.parametrize("column", ["[id]", "{id}"])
    def test_a_header_in_brackets_is_no_json(self, write, name, between, column):
        path = write(f"{column}{between}text\n1{between}a\n", name=name)
        (record,) = read_records(path)
        assert record.fields == {column: "1", "text": "a"}

    def test_a_json_list_says_how_to_convert_it(self, write):
        with pytest.raises(FormatError, match=r"a\.json, line 2: .*JSON lines.* jq "):
            read_records(write('\n[\n{"a": 1}\n]\n', name="a.json"))

    def test_tsv_knows_no_quotes(self, write):
        path = write('id\ttext\n1\t"그는\n2\t 갔다" \n', name="a.tsv")
        assert fields(path) == [
            (2, {"id": "1", "text": '"그는'}),
            (3, {"id": "2", "text": ' 갔다" '}),
        ]

    def test_csv_quotes_commas_and_line_ends(self, write):
        path = write('id,text\n\n1,"a, ""b""\nc"\n2,d\n', name="a.csv")
        assert fields(path) == [
            (3, {"id": "1", "text": 'a, "b"\nc'}),
            (5, {"id": "2", "text": "d"}),
        ]

    @pytest.mark.parametrize(("suffix", "sign"), [("csv", ","), ("tsv", "\t")])
    def test_a_long_text_is_a_field(self, write, suffix, sign):
        text = "long " * 40_000
        path = write(f"id{sign}text\n1{sign}{text}\n", name=f"a.{suffix}")
        assert [found["text"].strip() for _, found in fields(path)] == [text.strip()]

    def test_line_ends_of_windows_do_not_stick_to_the_last_column(self, write):
        assert fields(write("a\tb\r\n1\tTrue\r\n", name="a.tsv")) == [(2, {"a": "1", "b": "True"})]

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.tsv", "a\tb\n1\t2\n3\n", r"line 3: 1 .* 2 \(a, b\)"),
            ("a.tsv", "a\tb\n1\t2\t3\n", r"line 2: 3 .* 2 \(a, b\)"),
            ("a.tsv", "a\ta\n1\t2\n", "line 1: .*: a, a"),
            ("a.csv", "a,b\n1,2\n3\n", r"line 3: 1 .* 2 \(a, b\)"),
            ("a.csv", 'a,b\n1,"2\n3,4\n', "line 2: .*comma"),
        ],
    )
    def test_damage(self, write, name, content, message):
        with pytest.raises(FormatError, match=rf"{name}, {message}"):
            fields(write(content, name=name))

    def test_a_file_without_rows_has_no_records(self, write):
        assert fields(write("a\tb\n", name="a.tsv")) == []
        assert fields(write("\n \n", name="b.tsv")) == []


class TestFields:
    def test_a_missing_field_names_those_there(self, record):
        with pytest.raises(FormatError, match=r"line 1: .*'text'; .*: a, b"):
            record('{"a": 1, "b": 2}').text("text")

    @pytest.mark.parametrize("value", ["1", "null", "[]", "true"])
    def test_text_must_be_a_string(self, record, value):
        with pytest.raises(FormatError, match=rf"line 1: .*'a' .*{shown(value)}"):
            record(f'{{"a": {value}}}').text("a")

    def test_half_a_character_is_no_text(self, record):
        with pytest.raises(FormatError, match=r"line 1: .*character 1\b"):
            record(r'{"a": "x\ud83d"}').text("a")
        assert record(r'{"a": "x\ud83d\ude00"}').text("a") == "x😀"

    @pytest.mark.parametrize(("value", "number"), [("7", 7), ('"7"', 7), ("-2", -2), ("0", 0)])
    def test_whole_numbers(self, record, value, number):
        assert record(f'{{"a": {value}}}').integer("a") == number

    @pytest.mark.parametrize(
        "value", ['"seven"', "1.5", "true", "null", '""', '"٣"', f'"{"9" * 9999}"']
    )
    def test_what_is_no_whole_number(self, record, value):
        with pytest.raises(FormatError, match=rf"line 1: .*'a' .*{shown(value)}"):
            record(f'{{"a": {value}}}').integer("a")

    @pytest.mark.parametrize(
        ("value", "truth"),
        [("true", True), ("false", False), ('"TRUE"', True), ('"False"', False)],
    )
    def test_truth(self, record, value, truth):
        assert record(f'{{"a": {value}}}').truth("a") is truth

    @pytest.mark.parametrize("value", ["1", '"yes"', "null", "[]", '""'])
    def test_what_is_neither_true_nor_false(self, record, value):
        with pytest.raises(FormatError, match=rf"line 1: .*'a' .*true .*false, .*{shown(value)}"):
            record(f'{{"a": {value}}}').truth("a")

    @pytest.mark.parametrize(
        ("value", "label"),
        [
            ('"pos"', "pos"),
            ('" pos "', "pos"),
            ("1", "1"),
            ('"-"', "-"),
            ("null", None),
            ('""', None),
        ],
    )
    def test_labels(self, record, value, label):
        assert record(f'{{"a": {value}}}').label("a", ("pos", "1", "-")) == label
        assert record(f'{{"a": {value}}}').label("a", None) == label

    def test_what_stands_for_no_label(self, record):
        assert record('{"a": "-"}').label("a", None, missing=("", "-")) is None

    def test_an_unknown_label_names_the_allowed_ones(self, record):
        with pytest.raises(FormatError, match=r"line 1: .*'good' .*'a'; .*: pos, neg"):
            record('{"a": "good"}').label("a", ("pos", "neg"))

    @pytest.mark.parametrize("value", ["true", "1.5", "[]"])
    def test_what_is_no_label(self, record, value):
        with pytest.raises(FormatError, match=rf"line 1: .*'a' .*{shown(value)}"):
            record(f'{{"a": {value}}}').label("a", None)
