"""Vectors as columns of Arrow tables."""

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.embed.options import EmbedOptions
from elmokit.errors import InputError
from elmokit.integrations.arrow_table import TableEmbedder

from ...builders.embedding_models import random_sentences, toy_model

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")


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
