"""Texts with ids: FASTA, tables and JSON lines give every format its keys."""

import gzip
import json

import numpy as np
import pytest

import elmokit
from elmokit.embed import job, merge
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError, InputError

from ..builders.embedding_models import embed_files, toy_model

FASTA = ">sp|P1|A_1 of a river\nMKTAY\nIAK QR\n\n>10 ten\nGG*\n>2\n"
SEQUENCES = {"sp|P1|A_1": list("MKTAYIAKQR"), "10": list("GG*"), "2": []}
TEXTS = {key: " ".join(words) for key, words in SEQUENCES.items()}
TABLES = {
    ".fasta": (FASTA, {}),
    ".fa.gz": (FASTA, {}),
    ".jsonl": (
        "".join(json.dumps({"name": key, "seq": text}) + "\n" for key, text in TEXTS.items()),
        {"id_field": "name", "text_field": "seq"},
    ),
    ".tsv": (
        "name\ttext\n" + "".join(f"{key}\t{text}\n" for key, text in TEXTS.items()),
        {"id_field": "name"},
    ),
    ".csv": (
        "text,n\n" + "".join(f'"{text}",{key}\n' for key, text in TEXTS.items()),
        {"id_field": "n"},
    ),
}


def write(path, content):
    data = content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture(scope="module")
def embedder():
    return Embedder(toy_model())


@pytest.fixture(params=[".h5", ".npz", ".parquet"])
def suffix(request):
    if request.param == ".parquet":
        pytest.importorskip("pyarrow")
    return request.param


@pytest.mark.parametrize("kind", TABLES)
def test_ids_are_the_keys_in_every_format(kind, suffix, embedder, tmp_path):
    content, fields = TABLES[kind]
    text, output = write(tmp_path / f"a{kind}", content), tmp_path / f"out{suffix}"
    embed_files(embedder, text, output, **fields)
    with elmokit.open_vectors(output) as sentences:
        assert sentences.keys() == list(SEQUENCES)
        assert sentences.line_numbers.tolist() == [0, 1, 2]
        for key, words in SEQUENCES.items():
            assert sentences[key].tokens == words
            np.testing.assert_array_equal(sentences[key].vectors, embedder.embed([words])[0])
        assert sentences.metadata["keys"] == (fields.get("id_field") or "FASTA")


def test_interrupted_and_merged_shards_keep_their_ids(suffix, embedder, tmp_path, monkeypatch):
    text = write(tmp_path / "a.fasta", FASTA)
    shards = [tmp_path / f"{k}{suffix}" for k in range(2)]
    monkeypatch.setattr(job, "PART_SENTENCES", 1)

    def stop(*_):
        raise KeyboardInterrupt

    for k, shard in enumerate(shards):
        with pytest.raises(KeyboardInterrupt):
            embed_files(embedder, text, shard, shard=(k, 2), on_progress=stop)
        report = embed_files(embedder, text, shard, shard=(k, 2), resume=True)
        assert report.resumed_sentences >= 1
    merge.merge_shards(shards[::-1], tmp_path / f"all{suffix}")
    with elmokit.open_vectors(tmp_path / f"all{suffix}") as sentences:
        assert sentences.keys() == list(SEQUENCES)
        assert [tokens for tokens, _ in sentences] == list(SEQUENCES.values())


@pytest.mark.parametrize(
    ("name", "content", "fields", "match"),
    [
        ("a.fa", ">P1\nMK\n>P1\nGG\n", {}, r"a\.fa, line 3.*'P1'.*record 1"),
        ("a.fa", ">\nMK\n", {}, r"a\.fa, line 1.*id"),
        ("a.fa", "MK\n", {}, r"a\.fa, line 1.*>"),
        ("a.fa", ">PF/1-5\nMK\n", {}, r"line 1.*'PF/1-5'.*\.npz"),
        ("a.fa", ">line_numbers\nMK\n", {}, r"line 1.*'line_numbers'"),
        ("a.tsv", "id\ttext\n1\tx\n", {"id_field": "nr"}, r"a\.tsv.*'nr'.* id, text"),
        ("a.jsonl", '{"id": 1.5, "text": "x"}\n', {"id_field": "id"}, r"line 1.*`id`.*1\.5"),
        ("a.jsonl", '{"id": 1\n', {"id_field": "id"}, r"a\.jsonl, line 1.*JSON"),
        ("a.jsonl", '{"id": "\\ud800", "text": "x"}\n', {"id_field": "id"}, r"line 1.*id"),
        ("a.txt", "x\n", {"id_field": "id"}, r"a\.txt.*--id-field.*\.fasta"),
        ("a.fa", ">P1\nMK\n", {"file_format": "bilm-tf"}, r"bilm-tf.*elmokit"),
    ],
)
def test_wrong_ids_are_told_with_their_place(name, content, fields, match, embedder, tmp_path):
    text = write(tmp_path / name, content)
    with pytest.raises((FormatError, InputError), match=match):
        embed_files(embedder, text, tmp_path / "out.h5", **fields)
    assert [path.name for path in tmp_path.iterdir()] == [name]
