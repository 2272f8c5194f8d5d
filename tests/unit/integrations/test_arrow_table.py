"""Vectors as columns of Arrow tables."""

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.embed.options import EmbedOptions
from elmokit.errors import InputError

from ...builders.embedding_models import random_sentences, toy_model

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture(scope="module")
def model():
    return toy_model()


def test_rows_keep_their_columns_and_get_the_vectors(model):
    from elmokit.integrations.arrow_table import TableEmbedder

    texts = [" ".join(words) for words in random_sentences(6)]
    table = pa.table({"number": range(7), "text": [*texts, None]})
    embed = TableEmbedder(model, options=EmbedOptions(layers="all", dtype="float16"))
    found = embed(table)
    assert found.column_names == ["number", "text", "tokens", "layer_0", "layer_1", "layer_2"]
    assert found.select(["number", "text"]) == table
    expected = Embedder(model).embed([*(text.split() for text in texts), []])
    for row, vectors in zip(found.to_pylist(), expected, strict=True):
        assert row["tokens"] == (row["text"] or "").split()
        for layer in range(3):
            same = np.array(row[f"layer_{layer}"], np.float16).reshape(-1, 16)
            np.testing.assert_array_equal(same, vectors[layer].astype(np.float16))
    assert next(embed.batches(table.to_batches())).schema == found.schema
    assert embed(table.slice(0, 0)).num_rows == 0


def test_what_cannot_be_done_is_said(model):
    from elmokit.integrations.arrow_table import TableEmbedder

    with pytest.raises(InputError, match="carry"):
        TableEmbedder(model, options=EmbedOptions(state="carry"))
    with pytest.raises(InputError, match=r"float64"):
        TableEmbedder(model, options=EmbedOptions(dtype="float64"))
    for of_files in ({"shard": (0, 2)}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(InputError, match="for files"):
            TableEmbedder(model, options=EmbedOptions(layers="average", **of_files))
    embed, table = TableEmbedder(model), pa.table({"text": ["a"]})
    with pytest.raises(InputError, match="has tokens, average already"):
        embed(embed(table))
    with pytest.raises(InputError, match=r"'text'.*sentence"):
        TableEmbedder(model)(pa.table({"sentence": ["a"]}))
    for wrong in ([0, 0], [["a"]], [b"a"]):
        with pytest.raises(InputError, match="'text' must hold strings"):
            TableEmbedder(model)(pa.table({"text": wrong}))
    with pytest.raises(InputError, match=r"row 1 of the column 'text'.*NUL"):
        TableEmbedder(model)(pa.table({"text": ["a", "b\0"]}))
    for options in (EmbedOptions(batch_tokens=0),):
        with pytest.raises(InputError, match="`batch_tokens`"):
            TableEmbedder(model, options=options)
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        table = pa.table({"text": pa.array(["a"], pa.string()).cast(kind)})
        assert embed(table).num_rows == 1
