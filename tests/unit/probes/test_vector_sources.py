"""Sources of vectors: layers trained and random, static words."""

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.probes.vector_sources import LayerSource, check_names, layer_sources, static_source

from ...builders.task_models import toy_model

SENTENCES = [("I", "sat", "by", "the", "bank"), ("배", "를"), ("the", "river", ".")]


@pytest.fixture
def embedder():
    return Embedder(toy_model())


@pytest.fixture
def model_dir(tmp_path):
    toy_model().save(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.fixture
def vectors_path(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 2\nbank 3 4\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("layers", "names"),
    [
        ("all", ("layer 0", "layer 1", "layer 2")),
        ("top", ("layer top",)),
        ("average", ("layer average",)),
        (1, ("layer 1",)),
    ],
)
def test_kept_layers_are_those_of_the_stream_in_half_precision(embedder, tmp_path, layers, names):
    source = LayerSource(embedder, layers=layers, cache_dir=tmp_path)
    assert source.names == names
    streamed, kept = list(source.stream(SENTENCES)), source.keep(SENTENCES)
    expected = embedder.embed([list(words) for words in SENTENCES], layers=layers)
    for one, other, vectors in zip(streamed, kept, expected, strict=True):
        num_words = len(vectors[0] if layers == "all" else vectors)
        assert one.shape == other.shape == (len(names), num_words, 16)
        np.testing.assert_allclose(one, vectors.reshape(one.shape), atol=1e-6)
        np.testing.assert_allclose(other, one, atol=2e-3)


def test_layers_that_a_model_lacks_are_refused(embedder):
    with pytest.raises(InputError, match=r"`layers` .* 0 .* 2 .* 3\b"):
        LayerSource(embedder, layers=3)


def test_sentences_start_from_the_state_that_is_asked_for(embedder, tmp_path):
    source = LayerSource(embedder, state="warm", cache_dir=tmp_path)
    expected = embedder.embed([list(words) for words in SENTENCES], state="warm")
    zero = LayerSource(embedder, cache_dir=tmp_path).keep(SENTENCES)
    every = zip(source.stream(SENTENCES), source.keep(SENTENCES), expected, zero, strict=True)
    for streamed, kept, vectors, other in every:
        np.testing.assert_allclose(streamed, vectors, atol=1e-6)
        np.testing.assert_allclose(kept, vectors, atol=2e-3)
        assert np.abs(kept[1:] - other[1:]).max() > 1e-2
    with pytest.raises(InputError, match="`state` must be one of warm, reset, got 'carry'"):
        LayerSource(embedder, state="carry")


def test_progress_counts_sentences_that_are_computed(embedder, tmp_path):
    done = []
    source = LayerSource(embedder, cache_dir=tmp_path, on_sentence=lambda: done.append(1))
    list(source.stream(SENTENCES))
    assert len(done) == 3
    source.keep(SENTENCES)
    source.keep(SENTENCES)  # from disk
    assert len(done) == 6


def test_static_vectors_do_not_know_the_sentence(vectors_path):
    source = static_source(vectors_path, {"the", "bank", "sat"})
    (vectors,) = source.stream([("The", "bank", "sat")])
    assert vectors.tolist() == [[[1, 2], [3, 4], [0, 0]]]
    assert source.keep([("bank",)])[0].tolist() == [[[3, 4]]]


def test_static_vectors_of_other_words_are_refused(vectors_path):
    with pytest.raises(InputError, match=r"/vectors.txt "):
        static_source(vectors_path, {"배"})


def test_trained_layers_come_before_random_ones(model_dir):
    sources = layer_sources(model_dir, layers="top", random_seed=1)
    assert check_names(sources) == ["layer top", "random top"]


def test_random_weights_are_those_of_the_seed(model_dir):
    def top(seed):
        trained, random = layer_sources(model_dir, layers="top", random_seed=seed)
        return next(trained.stream(SENTENCES)), next(random.stream(SENTENCES))

    (trained, one), (_, same), (_, other) = top(1), top(1), top(2)
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3
    assert np.abs(one - trained).max() > 1e-3


def test_representations_need_names_of_their_own(embedder):
    with pytest.raises(InputError, match=r"`sources` .* none"):
        check_names([])
    with pytest.raises(InputError, match="layer 0, layer 0"):
        check_names([LayerSource(embedder, layers=0), LayerSource(embedder, layers=0)])
