"""A row for every occurrence, in Arrow, Parquet and the stores that read them."""

import json
import unicodedata

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.text.tokenizers.registry import TokenizerConfig

from ...builders.embedding_models import toy_model

pytest.importorskip("pyarrow", reason="extra `arrow` is not installed")

import pyarrow as pa
from pyarrow import parquet

from elmokit.integrations.occurrences import occurrence_batches, write_occurrences

TEXTS = ["I sat by the bank.", "", "The river’s bank, the  other!", "배를 타고 갔다"] * 5


@pytest.fixture(scope="module")
def embedder():
    return Embedder(toy_model(tokenizer=TokenizerConfig(name="simple", version="1")))


def table(embedder, texts=TEXTS, **options):
    return pa.Table.from_batches(occurrence_batches(embedder, texts, **options))


@pytest.mark.parametrize("layers", ["average", "top", 0])
def test_every_word_has_its_row(embedder, layers):
    found = table(embedder, layers=layers, rows=7)
    expected = embedder.embed(TEXTS, layers=layers)
    words = [embedder.tokenizer.tokenize(text) for text in TEXTS]
    assert found["word"].to_pylist() == [word for one in words for word in one]
    assert found["text"].to_pylist() == [i for i, one in enumerate(words) for _ in one]
    assert found["position"].to_pylist() == [i for one in words for i in range(len(one))]
    assert np.array_equal(found["vector"].combine_chunks().values.to_numpy().reshape(-1, 16),
                          np.concatenate(expected))  # fmt: skip


def test_places_lead_to_the_word_in_its_sentence(embedder):
    for row in table(embedder).drop_columns("vector").to_pylist():
        assert row["sentence"] == TEXTS[row["text"]]
        assert row["sentence"][row["start"] : row["end"]] == row["word"].replace(
            "'", "’"
        )  # normalized


def test_chosen_words_are_found_as_the_model_reads_them(embedder):
    decomposed = unicodedata.normalize("NFD", "갔다")
    assert table(embedder, words=[decomposed]).equals(table(embedder, words=["갔다"]))


def test_only_some_words_and_batches_of_a_size(embedder):
    batches = list(occurrence_batches(embedder, TEXTS, words=["bank", "갔다"], rows=4))
    assert [batch.num_rows for batch in batches] == [4, 4, 4, 3]
    found = pa.Table.from_batches(batches)
    assert found["word"].to_pylist() == ["bank", "bank", "갔다"] * 5
    everything = table(embedder)
    chosen = [i for i, w in enumerate(everything["word"].to_pylist()) if w in ("bank", "갔다")]
    assert found.equals(everything.take(chosen))


def test_the_file_holds_the_table_and_how_it_was_made(embedder, tmp_path):
    rows = write_occurrences(embedder, TEXTS, tmp_path / "words.parquet", layers="top")
    found = parquet.read_table(tmp_path / "words.parquet")
    assert found.num_rows == rows > 0
    assert found.equals(table(embedder, layers="top"))
    metadata = json.loads(found.schema.metadata[b"elmokit"])
    assert metadata["layers"] == "top"
    assert metadata == {"kind": "occurrences of words", **embedder.metadata(layers="top")}


def test_a_failure_leaves_the_file_that_was_there(embedder, tmp_path):
    path = tmp_path / "words.parquet"
    write_occurrences(embedder, TEXTS, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="NUL"):
        write_occurrences(embedder, [*TEXTS, "a\0b"], path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_no_texts_give_an_empty_file(embedder, tmp_path):
    assert write_occurrences(embedder, [], tmp_path / "words.parquet") == 0
    assert parquet.read_table(tmp_path / "words.parquet").num_rows == 0


def test_bad_input_is_refused(embedder, without_type_checks):
    with pytest.raises(InputError, match="one vector per word"):
        table(embedder, layers="all")
    with pytest.raises(InputError, match="`rows`"):
        table(embedder, rows=0)
    with pytest.raises(TypeError, match=r"text 1.*list"):
        table(embedder, ["a", ["b"]])
    with pytest.raises(TypeError, match="`texts` must be a list"):
        table(embedder, "one string")


def nearest_by_hand(found, row):
    vectors = np.stack(found["vector"].to_numpy(zero_copy_only=False))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit, np.argsort(-(unit @ unit[row]), kind="stable")


DISTINCT = ["I sat by the bank of a river .", "the river sat", "배 를 타고 갔다", "a bank"]


def test_faiss_finds_the_neighbors(embedder):
    faiss = pytest.importorskip("faiss", reason="faiss is not installed")
    found = table(embedder, DISTINCT)
    unit, expected = nearest_by_hand(found, 3)
    index = faiss.IndexFlatIP(embedder.dim)
    index.add(unit)
    assert index.search(unit[3:4], 5)[1][0].tolist() == expected[:5].tolist()


def test_lancedb_reads_the_batches_and_finds_the_neighbors(embedder, tmp_path):
    lancedb = pytest.importorskip("lancedb", reason="lancedb is not installed")
    found = table(embedder, DISTINCT)
    _, expected = nearest_by_hand(found, 3)
    store = lancedb.connect(tmp_path / "store").create_table(
        "words", occurrence_batches(embedder, DISTINCT), schema=found.schema
    )
    query = found["vector"][3].as_py()
    rows = store.search(query).distance_type("cosine").limit(5).to_arrow()
    assert rows["word"].to_pylist() == found.take(expected[:5])["word"].to_pylist()
    only = store.search(query).where("word = 'bank'").limit(5).to_arrow()
    assert sorted(only["sentence"].to_pylist()) == sorted([DISTINCT[0], DISTINCT[3]])


def test_qdrant_takes_the_rows_and_finds_the_neighbors(embedder):
    qdrant = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    from qdrant_client.models import Distance, PointStruct, VectorParams

    found = table(embedder, DISTINCT)
    _, expected = nearest_by_hand(found, 3)
    client = qdrant.QdrantClient(":memory:")
    client.create_collection(
        "words", vectors_config=VectorParams(size=embedder.dim, distance=Distance.COSINE)
    )
    rows = found.to_pylist()
    points = [
        PointStruct(id=i, vector=row.pop("vector"), payload=row) for i, row in enumerate(rows)
    ]
    client.upsert("words", points)
    query = found["vector"][3].as_py()
    hits = client.query_points("words", query=query, limit=5).points
    assert [hit.id for hit in hits] == expected[:5].tolist()
    assert hits[0].payload["word"] == found["word"][3].as_py()
