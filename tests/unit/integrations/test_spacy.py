"""The component in pipelines that spaCy saves and loads.

spaCy finds `elmokit.integrations.spacy` through its entry points.
"""

import shutil

import numpy as np
import pytest

spacy = pytest.importorskip("spacy", reason="extra `spacy` is not installed")

TEXTS = ["I sat by the bank. The river  was high.", "A boat.\n\nIt sank!", "", " \n"]


def pipeline(folder, *, sentences=True, **settings):
    nlp = spacy.blank("en")
    if sentences:
        nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"model": str(folder)} | settings)
    return nlp


@pytest.mark.parametrize("sentences", [True, False])
@pytest.mark.parametrize("layers", ["average", "top", 0])
def test_tensors_are_the_embedders_vectors(folder, embedder, layers, sentences):
    nlp = pipeline(folder, layers=layers, sentences=sentences)
    for doc in [*nlp.pipe(TEXTS, batch_size=3), *map(nlp, TEXTS)]:
        pieces = [list(piece) for piece in (doc.sents if sentences else [doc])]
        words = [[token.text for token in piece if not token.is_space] for piece in pieces]
        expected = np.concatenate(embedder.embed(words, layers=layers) or [doc.tensor[:0]])
        read = [token.i for token in doc if not token.is_space]
        assert np.array_equal(doc.tensor[read], expected)
        assert doc.tensor.shape == (len(doc), embedder.dim)
        assert not doc.tensor[[token.i for token in doc if token.is_space]].any()


def test_a_saved_pipeline_brings_its_model(folder, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    nlp = pipeline(copy, layers="top")
    expected = nlp(TEXTS[0]).tensor
    nlp.to_disk(tmp_path / "pipeline")
    data = nlp.to_bytes()
    nlp.config.to_disk(tmp_path / "config.cfg")
    shutil.rmtree(copy)
    loaded = spacy.load(tmp_path / "pipeline")
    assert np.array_equal(loaded(TEXTS[0]).tensor, expected)
    shutil.rmtree(tmp_path / "pipeline")  # what is loaded does not need it any more
    loaded.to_disk(tmp_path / "again")
    assert np.array_equal(spacy.load(tmp_path / "again")(TEXTS[0]).tensor, expected)
    config = spacy.util.load_config(tmp_path / "config.cfg")
    from_bytes = spacy.util.load_model_from_config(config).from_bytes(data)
    assert np.array_equal(from_bytes(TEXTS[0]).tensor, expected)


def test_vectors_of_tokens_spans_and_documents(folder):
    doc = pipeline(folder)(TEXTS[0])
    read = [token.i for token in doc if not token.is_space]
    assert np.array_equal(doc[3].vector, doc.tensor[3])
    assert np.allclose(doc.vector, doc.tensor[read].mean(axis=0), atol=1e-7)
    for one in (doc, doc[1:4], doc[1]):  # whatever has a vector
        cosine = one.vector @ doc[3:6].vector / one.vector_norm / doc[3:6].vector_norm
        assert one.vector_norm == pytest.approx(np.linalg.norm(one.vector))
        assert one.similarity(doc[3:6]) == pytest.approx(cosine, abs=1e-6)
    assert [token.has_vector for token in doc] == [not token.is_space for token in doc]
    empty = pipeline(folder)("  ")
    assert not empty.has_vector
    assert not empty.vector.any()
