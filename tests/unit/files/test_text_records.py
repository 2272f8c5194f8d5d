"""What a file holds, by its suffix."""

import json

import pytest

from elmokit.errors import FormatError
from elmokit.files.text_records import TextRecords

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
def test_a_file_is_read_by_its_suffix(tmp_path, suffix, content):
    assert texts_of(tmp_path / f"a{suffix}", content, text_field="text") == TEXTS


def test_cells_between_tabs_are_unquoted_if_all_marks_within_are_doubled(tmp_path):
    cells = ['"""I see,"" he says."', '""""', '"No."', '"Yes," he said.', 'say ""', '""', '"a""']
    content = "text\n" + "".join(f"{cell}\n" for cell in cells)
    read = texts_of(tmp_path / "a.tsv", content, text_field="text")
    assert read == ['"I see," he says.', '"', *cells[2:]]


def test_json_lines_under_another_name_are_read_if_their_field_is_named(tmp_path):
    path = tmp_path / "a.txt"
    assert texts_of(path, AS_JSON, text_field="text") == TEXTS
    with pytest.raises(FormatError, match=r"a\.txt: .*--column"):
        texts_of(path, AS_JSON)


@pytest.mark.parametrize("suffix", [".jsonl", ".tsv", ".txt"])
def test_column_0_reads_whole_lines_under_any_name(tmp_path, suffix):
    assert texts_of(tmp_path / f"a{suffix}", AS_JSON, text_field="0") == AS_JSON.splitlines()


@pytest.mark.parametrize("column", ["text", "2"])
def test_a_table_under_another_name_is_refused_where_a_column_is_named(tmp_path, column):
    for content in (AS_TSV, AS_CSV):
        with pytest.raises(FormatError, match=r"a\.txt: .*\.tsv"):
            texts_of(tmp_path / "a.txt", content, text_field=column)


def test_a_column_is_told_to_have_no_effect_on_prose(tmp_path, caplog):
    assert texts_of(tmp_path / "a.txt", "A line.\n", text_field="body") == ["A line."]
    assert "'body' has no effect" in caplog.text


def test_fasta_is_no_prose(tmp_path):
    sequences = ">sp|P1\nMKV\nLLA\n"
    with pytest.raises(FormatError, match=r"p\.fa: FASTA.*characters"):
        texts_of(tmp_path / "p.fa", sequences)
    assert len(texts_of(tmp_path / "p.fa", sequences, text_field="0")) == 3
    assert texts_of(tmp_path / "persian.fa", "سلام\n") == ["سلام"]


@pytest.mark.parametrize("prose", ["one\ttwo\n" * 20, "{braces} are no JSON\n", ""])
def test_prose_is_prose(tmp_path, prose):
    for fields in ({}, {"text_field": "body"}):  # a folder may hold both kinds
        assert texts_of(tmp_path / "a.txt", prose, **fields) == prose.splitlines()


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_parquet_texts_may_be_stored_in_any_way(tmp_path, encoding):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts, path = ["one line", None, "둘", "one line"], tmp_path / "a.parquet"
    options = {"column_encoding": {"text": encoding, "id": "PLAIN"}, "write_statistics": False}
    table = arrow.table({"text": texts, "id": list("abcd")})
    parquet.write_table(table, path, use_dictionary=False, **options)
    records = list(TextRecords(path, text_field="text"))
    missing = records.pop(1)
    assert [record.text.decode() for record in records] == ["one line", "둘", "one line"]
    assert str(missing.text) == "no string in 'text'."


@pytest.mark.parametrize("encoding", ["PLAIN_DICTIONARY", "DELTA_BYTE_ARRAY"])
def test_long_parquet_texts_that_are_stored_once_are_held_once(tmp_path, encoding):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, table = tmp_path / "a.parquet", arrow.table({"text": ["x" * 1_000_000] * 300})
    if encoding == "DELTA_BYTE_ARRAY":
        parquet.write_table(table, path, use_dictionary=False, column_encoding=encoding)
    else:
        parquet.write_table(table, path)
    del table
    assert path.stat().st_size < 10_000_000
    held = [arrow.total_allocated_bytes() for record in TextRecords(path) if record.text]
    assert len(held) == 300
    assert max(held) < 20_000_000


def test_a_parquet_column_of_lists_is_no_text(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"text": [["a", "b"]]}), tmp_path / "a.parquet")
    with pytest.raises(FormatError, match=r"'text'.*list"):
        list(TextRecords(tmp_path / "a.parquet", text_field="text"))
