"""Embeddings that flair itself computes, saves with a tagger, and loads."""

import warnings

import numpy as np
import pytest
import torch

from ...builders.embedding_models import random_sentences

pytestmark = pytest.mark.filterwarnings("default")  # flair and what it drags in give many

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    flair = pytest.importorskip("flair", reason="extra `flair` is not installed")
    from flair.data import Corpus, Sentence
    from flair.datasets import FlairDatapointDataset
    from flair.embeddings import StackedEmbeddings
    from flair.models import SequenceTagger

    from elmokit.integrations.flair import ElmoEmbeddings


def flair_sentences():
    return [Sentence(words) for words in random_sentences(12) if words]


@pytest.mark.parametrize("layers", ["average", "top", 0])
def test_tokens_get_the_embedders_vectors(embedder, layers):
    sentences = flair_sentences()
    embeddings = ElmoEmbeddings(embedder, layers=layers)
    StackedEmbeddings([embeddings]).embed(sentences)
    words = [[token.text for token in sentence] for sentence in sentences]
    for sentence, vectors in zip(sentences, embedder.embed(words, layers=layers), strict=True):
        found = np.stack([token.embedding.cpu().numpy() for token in sentence])
        assert np.array_equal(found, vectors)
    assert embeddings.embedding_length == embedder.dim


def test_a_tagger_learns_and_is_saved_with_them(embedder, tmp_path):
    flair.set_seed(0)
    sentences = flair_sentences()
    for sentence in sentences:
        for token in sentence:
            token.add_label("length", str(min(len(token.text), 4)))
    corpus = Corpus(train=FlairDatapointDataset(sentences), sample_missing_splits=False)
    labels = corpus.make_label_dictionary("length", add_unk=False)
    tagger = SequenceTagger(
        ElmoEmbeddings(embedder, layers=0), labels, tag_type="length", use_rnn=False,
        use_crf=False, dropout=0.0, word_dropout=0.0, locked_dropout=0.0,
    )  # fmt: skip
    optimizer = torch.optim.Adam(tagger.parameters(), lr=0.03)
    for _ in range(150):
        optimizer.zero_grad()
        loss, count = tagger.forward_loss(sentences)
        (loss / count).backward()
        optimizer.step()
    tagger.save(tmp_path / "tagger.pt")
    loaded = SequenceTagger.load(tmp_path / "tagger.pt")
    new = flair_sentences()
    loaded.predict(new)
    tokens = [token for sentence in new for token in sentence]
    right = [t.get_label("length").value == str(min(len(t.text), 4)) for t in tokens]
    assert np.mean(right) > 0.95
