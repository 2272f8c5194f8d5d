"""`ElmoVectorizer` in scikit-learn's own tools; vectors are those of `Embedder`."""

import pickle

import numpy as np
import pytest

from ...builders.embedding_models import random_sentences

pytest.importorskip("sklearn", reason="extra `sklearn` is not installed")

from sklearn.base import clone

from elmokit.integrations.sklearn import ElmoVectorizer

TEXTS = [" ".join(words) for words in random_sentences(40, seed=2)]


@pytest.mark.parametrize("pooling", ["mean", "max", "sif"])
@pytest.mark.parametrize("layers", ["average", "top", 0, None])
def test_rows_are_embed_sentences(folder, embedder, pooling, layers):
    vectorizer = ElmoVectorizer(folder, pooling=pooling, layers=layers)
    found = vectorizer.fit_transform(TEXTS)
    expected = embedder.embed_sentences(TEXTS, pooling=pooling, layers=layers)
    assert np.array_equal(found, expected)
    lists = [text.split() for text in TEXTS]
    assert np.array_equal(vectorizer.transform(lists), expected)
    for column in (np.array(TEXTS, dtype=object), np.array(TEXTS, dtype=object).reshape(-1, 1)):
        assert np.array_equal(vectorizer.transform(column), expected)


@pytest.mark.parametrize("pooling", ["mean", "sif"])
def test_pickles_and_clones(folder, pooling):
    vectorizer = ElmoVectorizer(folder, pooling=pooling, layers="top")
    fitted = clone(vectorizer).fit(TEXTS)
    assert not hasattr(vectorizer, "embedder_")
    assert clone(fitted).get_params() == vectorizer.get_params()
    data = pickle.dumps(fitted)
    assert len(data) < 5000  # the directory, not the weights
    assert np.array_equal(pickle.loads(data).transform(TEXTS), fitted.transform(TEXTS))
