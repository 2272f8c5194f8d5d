"""Vectors as columns of Arrow tables."""

import json
import unicodedata

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.embed.options import EmbedOptions
from elmokit.errors import InputError
from elmokit.integrations.arrow_table import TableEmbedder, occurrence_batches, write_occurrences
from elmokit.text.tokenizers.registry import TokenizerConfig

from ...builders.embedding_models import random_sentences, toy_model

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet")


def test_rows_keep_their_columns_and_get_the_vectors():
    model = toy_model()
    texts = [" ".join(words) for words in random_sentences(6)]
    table = pa.table({"number": range(7), "text": [*texts, None]})
    embed = TableEmbedder(model, options=EmbedOptions(layers="all", dtype="float16"))
    result = embed(table)
    assert result.column_names == ["number", "text", "tokens", "layer_0", "layer_1", "layer_2"]
    assert result.select(["number", "text"]) == table
    expected = Embedder(model).embed([*(text.split() for text in texts), []])
    for row, vectors in zip(result.to_pylist(), expected, strict=True):
        assert row["tokens"] == (row["text"] or "").split()
        for layer in range(3):
            same = np.array(row[f"layer_{layer}"], np.float16).reshape(-1, 16)
            np.testing.assert_array_equal(same, vectors[layer].astype(np.float16))
    assert embed(table.slice(0, 0)).num_rows == 0
    for wrong in (result, pa.table({"sentence": ["a"]}), pa.table({"text": ["a", "b\0"]})):
        with pytest.raises(InputError, match="text"):
            embed(wrong)
    with pytest.raises(InputError, match="carry"):
        TableEmbedder(model, options=EmbedOptions(state="carry"))


TEXTS = ["I sat by the bank.", "", "The river’s bank, the  other!", "배를 타고 갔다"] * 5


@pytest.fixture(scope="module")
def embedder():
    return Embedder(toy_model(tokenizer=TokenizerConfig(name="simple", version="1")))


def table(embedder, texts=TEXTS, **options):
    return pa.Table.from_batches(occurrence_batches(embedder, texts, **options))


@pytest.mark.parametrize("layers", ["average", "top", 0])
def test_every_word_has_its_row_and_its_place(embedder, layers):
    found = table(embedder, layers=layers, rows=7)
    expected = embedder.embed(TEXTS, layers=layers)
    words = [embedder.tokenizer.tokenize(text) for text in TEXTS]
    assert found["word"].to_pylist() == [word for one in words for word in one]
    assert found["text"].to_pylist() == [i for i, one in enumerate(words) for _ in one]
    assert found["position"].to_pylist() == [i for one in words for i in range(len(one))]
    assert np.array_equal(found["vector"].combine_chunks().values.to_numpy().reshape(-1, 16),
                          np.concatenate(expected))  # fmt: skip
    for row in found.drop_columns("vector").to_pylist():
        assert row["sentence"] == TEXTS[row["text"]]
        written = row["sentence"][row["start"] : row["end"]]
        assert written.replace("’", "'") == row["word"]  # normalized


def test_only_some_words_and_batches_of_a_size(embedder):
    batches = list(occurrence_batches(embedder, TEXTS, words=["bank", "갔다"], rows=4))
    assert [batch.num_rows for batch in batches] == [4, 4, 4, 3]
    found = pa.Table.from_batches(batches)
    assert found["word"].to_pylist() == ["bank", "bank", "갔다"] * 5
    everything = table(embedder)
    rows = [i for i, w in enumerate(everything["word"].to_pylist()) if w in ("bank", "갔다")]
    assert found.equals(everything.take(rows))
    decomposed = unicodedata.normalize("NFD", "갔다")  # read alike
    assert table(embedder, words=[decomposed]).equals(table(embedder, words=["갔다"]))


def test_the_file_holds_the_table_and_how_it_was_made(embedder, tmp_path):
    rows = write_occurrences(embedder, TEXTS, tmp_path / "words.parquet", layers="top")
    found = parquet.read_table(tmp_path / "words.parquet")
    assert found.num_rows == rows > 0
    assert found.equals(table(embedder, layers="top"))
    metadata = json.loads(found.schema.metadata[b"elmokit"])
    assert metadata == {"kind": "occurrences of words", **embedder.metadata(layers="top")}
