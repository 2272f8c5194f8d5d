"""The component and the layer in pipelines that spaCy trains, saves and loads.

spaCy finds `elmokit.integrations.spacy` through its entry points.
"""

import shutil

import numpy as np
import pytest
import torch

spacy = pytest.importorskip("spacy", reason="extra `spacy` is not installed")

from spacy.tokens import Doc  # noqa: E402
from spacy.training import Example  # noqa: E402

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


SENTENCES = [
    (["I", "sat", "by", "the", "bank"], ["PRON", "VERB", "ADP", "DET", "NOUN"]),
    (["the", "river", "sat"], ["DET", "NOUN", "VERB"]),
    (["I", "sat", "by", "a", "river"], ["PRON", "VERB", "ADP", "DET", "NOUN"]),
]


def tagger(folder):
    nlp = spacy.blank("en")
    layer = {"@architectures": "elmokit.Tok2Vec.v1", "width": 32, "model": str(folder)}
    model = {"@architectures": "spacy.Tagger.v2", "tok2vec": layer, "normalize": False}
    nlp.add_pipe("tagger", config={"model": model})
    docs = [Doc(nlp.vocab, words=words) for words, _ in SENTENCES]
    examples = [
        Example.from_dict(doc, {"tags": tags})
        for doc, (_, tags) in zip(docs, SENTENCES, strict=True)
    ]
    return nlp, examples


def test_a_tagger_learns_from_the_layer_and_is_saved_with_it(folder, tmp_path):
    spacy.util.fix_random_seed(0)
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    nlp, examples = tagger(copy)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.05
    mix = nlp.get_pipe("tagger").model.get_ref("tok2vec").layers[0]
    before = mix.get_param("mix_weights").copy(), mix.get_param("gamma").copy()
    for _ in range(60):
        nlp.update(examples, sgd=optimizer)
    assert (before[0] != mix.get_param("mix_weights")).all()
    assert before[1] != mix.get_param("gamma")
    assert nlp.evaluate(examples)["tag_acc"] == 1.0
    nlp.to_disk(tmp_path / "pipeline")
    shutil.rmtree(copy)
    loaded = spacy.load(tmp_path / "pipeline")
    assert loaded.evaluate(examples)["tag_acc"] == 1.0


def test_the_gradients_of_the_mixture_are_those_of_pytorch(folder, embedder):
    nlp, examples = tagger(folder)
    nlp.initialize(lambda: examples)
    mix = nlp.get_pipe("tagger").model.get_ref("tok2vec").layers[0]
    draw = torch.Generator().manual_seed(0)
    weights = torch.randn(3, generator=draw, requires_grad=True)
    gamma = torch.tensor([1.5], requires_grad=True)
    mix.set_param("mix_weights", weights.detach().numpy())
    mix.set_param("gamma", gamma.detach().numpy())
    out, backprop = mix.begin_update([example.x for example in examples])
    upstream = [torch.randn(x.shape, generator=draw) for x in out]
    backprop([part.numpy() for part in upstream])
    shares = gamma * weights.softmax(dim=0)
    layers = embedder.embed([words for words, _ in SENTENCES], layers="all")
    for x, part, one in zip(out, upstream, layers, strict=True):
        expected = torch.einsum("l,lwd->wd", shares, torch.from_numpy(one))
        torch.testing.assert_close(torch.from_numpy(x), expected.detach())
        expected.backward(part, retain_graph=True)
    np.testing.assert_allclose(mix.get_grad("mix_weights"), weights.grad, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mix.get_grad("gamma"), gamma.grad, rtol=1e-4)


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
