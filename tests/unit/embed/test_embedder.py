import itertools
import pickle
import shutil

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.inference.frozen_bilm import FrozenBiLM, warm_state

from ...builders.embedding_models import largest_difference, random_sentences, toy_model


@pytest.fixture
def embedder():
    return Embedder(toy_model())


def test_stream_gives_the_same_and_reads_no_further_than_a_buffer(embedder):
    sentences = random_sentences(200)
    expected = embedder.embed(sentences, layers="top")
    asked = itertools.count()
    stream = embedder.embed_stream(
        (sentence for sentence in sentences if next(asked) >= 0), layers="top", batch_tokens=20
    )
    first = next(stream)
    assert next(asked) < 60
    assert largest_difference([first, *stream], expected) == 0


def test_warm_starts_every_sentence_from_the_stored_state():
    embedder = Embedder(toy_model(warm_text=("I sat by the bank .", "배 를 타고", "the river")))
    mean = warm_state(FrozenBiLM(embedder.model), embedder.model.warm_text)
    assert float(np.abs(mean.cell).max()) > 0
    sentences = random_sentences(20)
    expected = [embedder.embed_batch([s], state=mean)[0][0] for s in sentences]
    for batch_tokens in (4096, 9):
        found = embedder.embed(sentences, state="warm", batch_tokens=batch_tokens)
        assert largest_difference(found, expected) <= 1e-6


def test_wrong_options_are_refused_before_anything_is_read(embedder):
    never = (pytest.fail("read") for _ in range(1))
    for options in ({"layers": "bottom"}, {"state": "keep"}, {"batch_tokens": 0}):
        (name,) = options
        with pytest.raises(ValueError, match=f"`{name}`"):
            embedder.embed_stream(never, **options)


@pytest.mark.gpu
def test_cuda_gives_the_same_vectors():
    model, sentences = toy_model(), random_sentences(40)
    on_cuda = Embedder.load(model, device="cuda").embed(sentences)
    assert largest_difference(on_cuda, Embedder(model).embed(sentences)) <= 1e-5
    assert next(model.parameters()).device.type == "cpu"


def test_the_model_behind_an_embedder_is_the_one_that_computes(tmp_path):
    toy_model().save(tmp_path / "model")
    embedder = Embedder.load(tmp_path / "model")
    before = embedder.metadata()["model_hash"]
    assert before == toy_model().model_hash()
    fresh = Embedder.load(tmp_path / "model")
    toy_model(num_layers=3).save(tmp_path / "model")
    assert embedder.metadata()["model_hash"] == before
    with pytest.raises(FormatError, match=r"/model .*Embedder.load"):
        _ = fresh.model
    shutil.rmtree(tmp_path / "model")
    assert fresh.metadata(state="warm")["model_hash"] == before, "taken while loading"
    with pytest.raises(FileNotFoundError, match="/model"):
        _ = fresh.model


def test_a_pickle_is_of_a_model_not_of_the_files_that_hold_it(tmp_path):
    """As on another machine, or after the model was saved over itself."""
    toy_model().save(tmp_path / "model")
    embedder = Embedder.load(tmp_path / "model", device="auto")
    data = pickle.dumps(embedder)
    shutil.copytree(tmp_path / "model", tmp_path / "copy")
    shutil.rmtree(tmp_path / "model")
    (tmp_path / "copy").rename(tmp_path / "model")
    again = pickle.loads(data)
    np.testing.assert_array_equal(again.embed([["a"]])[0], embedder.embed([["a"]])[0])
    config = tmp_path / "model/config.json"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('"whitespace"', '"simple"'), encoding="utf-8")
    with pytest.raises(FormatError, match="has changed"):
        pickle.loads(data)
    config.write_text(text, encoding="utf-8")
    again.model.save(tmp_path / "model")
    assert pickle.loads(pickle.dumps(again)).device == again.device
