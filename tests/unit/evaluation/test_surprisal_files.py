"""Rows of surprisal in files, read back by what others read them with."""

import csv
import io
import json
from dataclasses import asdict

import pytest

from elmokit.embed.formats.registry import read_metadata
from elmokit.errors import FormatError
from elmokit.evaluation.surprisal import surprisal, typed_of
from elmokit.evaluation.surprisal_files import (
    TYPED_COLUMNS,
    columns_of,
    write_jsonl,
    write_surprisal,
    write_tsv,
)
from elmokit.evaluation.text_scorer import TextScorer

SENTENCES = [["the", '"', "강", "=1"], ["ship"]]


def rows_of(model, top):
    return list(surprisal(model, SENTENCES, top=top))


@pytest.mark.parametrize("top", [0, 2])
def test_tsv(model, top):
    stream = io.StringIO()
    rows = rows_of(model, top)
    write_tsv(rows, stream, columns_of(top=top))
    found = list(csv.DictReader(io.StringIO(stream.getvalue()), dialect="excel-tab"))
    assert list(found[0]) == columns_of(top=top)
    assert [line["word"] for line in found] == [row.word for row in rows]
    for line, row in zip(found, rows, strict=True):
        assert float(line["forward"]) == pytest.approx(row.forward, abs=5e-7)
        assert (line["start"], line["is_unknown"]) == ("", str(int(row.is_unknown)))
        if top:
            likely = [pair.rpartition("=") for pair in line["backward_top"].split(" ")]
            assert [(w, float(p)) for w, _, p in likely] == [
                (one.word, pytest.approx(one.probability, abs=5e-7)) for one in row.backward_top
            ]
    assert ("forward_top" in found[0]) == bool(top)


def test_parquet(model, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = rows_of(model, 2)
    metadata = TextScorer(model, hashed=True).metadata()
    write_surprisal(rows, tmp_path / "out.parquet", metadata, columns_of(top=2))
    stored = json.loads(parquet.read_schema(tmp_path / "out.parquet").metadata[b"elmokit"])
    assert stored == {"kind": "surprisal", **metadata}
    assert stored["model_hash"] == model.model_hash()
    with pytest.raises(FormatError, match="not an embedding file: it holds surprisal"):
        read_metadata(tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.column_names == columns_of(top=2)
    for line, row in zip(table.to_pylist(), rows, strict=True):
        assert (line["word"], line["index"], line["start"]) == (row.word, row.index, None)
        assert line["is_unknown"] is row.is_unknown
        assert line["mean"] == pytest.approx(row.mean, rel=1e-6)
        assert [one["word"] for one in line["forward_top"]] == [o.word for o in row.forward_top]


def test_another_suffix_and_a_failure_leave_no_file(model, tmp_path):
    with pytest.raises(ValueError, match=r"out\.csv.*\.tsv, \.jsonl, \.parquet.*'\.csv'"):
        write_surprisal(rows_of(model, 0), tmp_path / "out.csv", {}, columns_of(top=0))

    def rows():
        yield from rows_of(model, 0)
        raise RuntimeError("the text ends badly")

    with pytest.raises(RuntimeError):
        write_surprisal(rows(), tmp_path / "out.tsv", {}, columns_of(top=0))
    assert list(tmp_path.iterdir()) == []


def test_json_lines(model, tmp_path):
    rows = rows_of(model, 2)
    write_surprisal(rows, tmp_path / "out.jsonl", {}, columns_of(top=2))
    text = (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    read = [json.loads(line) for line in text.splitlines()]
    assert read == [json.loads(json.dumps(asdict(row))) for row in rows]


def test_a_typed_word_without_tokens_has_no_entropy_in_json():
    stream = io.StringIO()
    write_jsonl(typed_of("\u200b", []), stream, TYPED_COLUMNS)
    row = json.loads(stream.getvalue(), parse_constant=pytest.fail)
    assert (row["num_tokens"], row["forward_entropy"]) == (0, None)


def test_a_suffix_in_capitals_is_the_same_format(tmp_path, model):
    for name in ("rows.tsv", "rows.TSV"):
        write_surprisal(rows_of(model, 0), tmp_path / name, {}, columns_of(top=0))
    assert (tmp_path / "rows.TSV").read_bytes() == (tmp_path / "rows.tsv").read_bytes()
