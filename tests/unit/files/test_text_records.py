"""What a file holds: by its suffix, or by what it looks like if a column is named."""

import json

import pytest

from elmokit.errors import FormatError
from elmokit.files.text_records import TextRecords, delimiter_of

TEXTS = ["The bank opened, late.", 'She said "no".', "둘"]
AS_TSV = "id\ttext\n" + "".join(f"{number}\t{text}\n" for number, text in enumerate(TEXTS))
AS_CSV = 'id,text\n1,"The bank opened, late."\n2,"She said ""no""."\n3,둘\n'
AS_JSON = "".join(json.dumps({"id": len(text), "text": text}) + "\n" for text in TEXTS)


def texts_of(path, content, **fields):
    path.write_text(content, encoding="utf-8")
    return [record.text.decode() for record in TextRecords(path, **fields)]


@pytest.mark.parametrize(
    ("suffix", "content"), [(".tsv", AS_TSV), (".csv", AS_CSV), (".jsonl", AS_JSON)]
)
def test_a_table_is_read_by_its_suffix_or_by_its_looks_but_never_as_prose(
    tmp_path, suffix, content
):
    for path in (tmp_path / f"a{suffix}", tmp_path / "a.txt"):
        assert texts_of(path, content, text_field="text") == TEXTS
    with pytest.raises(FormatError, match=r"a\.txt: .*--column"):
        texts_of(tmp_path / "a.txt", content)
    assert texts_of(tmp_path / "a.txt", content, text_field="0") == content.splitlines()


@pytest.mark.parametrize(
    "prose",
    [
        "No, no\nYes, sir\nOh, well\nAh, so\n",
        "one\n" * 20,
        "\tIndented.\n\tOnce more.\n\tAnd again.\n",
        "A line\twith a tab.\nA line without.\nAnother.\n",
        "x\ty\nz\tw\n",  # two lines are not several
        "name, place\nMina, Seoul\nKim, Busan\n",  # a blank follows a comma of prose
        "{braces} are no JSON\n",
        "",
    ],
)
def test_prose_is_prose(tmp_path, prose):
    assert delimiter_of(prose.splitlines()) is None
    for fields in ({}, {"text_field": "body"}):  # a folder may hold both kinds
        assert texts_of(tmp_path / "a.txt", prose, **fields) == prose.splitlines()


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_parquet_texts_may_be_stored_in_any_way_and_need_not_be_utf8(tmp_path, encoding):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    raw = arrow.array([b"one line", b"\xff\xfe", None, b"one line"], arrow.binary())
    texts = arrow.Array.from_buffers(arrow.string(), len(raw), raw.buffers())
    table, path = arrow.table({"text": texts, "id": list("abcd")}), tmp_path / "a.parquet"
    options = {"column_encoding": {"text": encoding, "id": "PLAIN"}, "write_statistics": False}
    parquet.write_table(table, path, use_dictionary=False, **options)
    records = list(TextRecords(path, text_field="text", id_field="id"))
    assert [record.text for record in records if isinstance(record.text, bytes)] == [
        b"one line", b"\xff\xfe", b"one line"
    ]  # fmt: skip
    assert [record.key for record in records][0::3] == ["a", "d"]


def test_a_parquet_column_of_lists_is_no_text(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"text": [["a", "b"]]}), tmp_path / "a.parquet")
    with pytest.raises(FormatError, match=r"`?'text'.*list"):
        list(TextRecords(tmp_path / "a.parquet", text_field="text"))
