"""`trace`: the parts of a word's vectors, each held to the module that computes it."""

import numpy as np
import pytest
import torch

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.inspection.trace import trace, window_text
from elmokit.weights.model_dir import load_model

from ...builders.training_models import toy_model

SENTENCES = {
    "en": "The boat left the bank of the river .",
    "ko": "강에 배가 떠서 밥을 먹었다.",
}


@pytest.fixture(scope="module")
def model():
    return toy_model()


@pytest.mark.parametrize("name", SENTENCES)
def test_layers_are_those_of_the_embedder(name):
    model = load_model(name)
    (expected,) = Embedder(model).embed([SENTENCES[name]], layers="all")
    for index in (0, 2, expected.shape[1] - 1):
        found = trace(model, SENTENCES[name], word=index)
        layers = [np.concatenate((layer.forward, layer.backward)) for layer in found.layers]
        np.testing.assert_allclose(layers, expected[:, index], atol=1e-5)
        np.testing.assert_allclose(found.mixture, expected[:, index].mean(axis=0), atol=1e-5)


@pytest.mark.parametrize("name", SENTENCES)
def test_the_token_is_computed_from_the_filters_by_highways_and_projection(name):
    model = load_model(name)
    encoder = model.token_encoder
    found = trace(model, SENTENCES[name], word=1)
    x = torch.from_numpy(np.concatenate([one.values for one in found.filters]))
    with torch.no_grad():
        for highway, told in zip(encoder.highways, found.highways, strict=True):
            gates = torch.from_numpy(told.gates)
            x = gates * torch.relu(highway.transform(x)) + (1 - gates) * x
            np.testing.assert_allclose(x, told.output, atol=1e-5)
        token = x if encoder.projection is None else encoder.projection(x)
    np.testing.assert_allclose(token, found.token, atol=1e-5)
    np.testing.assert_allclose(found.layers[0].forward, found.token, atol=1e-5)
    np.testing.assert_array_equal(found.layers[0].forward, found.layers[0].backward)


@torch.no_grad()
def test_every_filter_wins_where_torchs_convolution_is_highest(model):
    found = trace(model, ["the", "강", "river"], word=1)
    encoder = model.token_encoder
    characters = encoder.char_embedding(torch.tensor([found.char_ids])).transpose(1, 2)
    for convolution, one in zip(encoder.convolutions, found.filters, strict=True):
        best, positions = convolution(characters)[0].max(dim=1)
        assert convolution.kernel_size == (one.width,)
        np.testing.assert_allclose(one.values, torch.relu(best), atol=1e-5)
        np.testing.assert_array_equal(one.positions, positions)
        assert len(one.windows) == len(positions)
        for at, window in zip(one.positions, one.windows, strict=True):
            assert window == window_text(found.char_ids[at : at + one.width])


def test_the_mixture_has_the_weights_and_the_scale_that_are_given(model):
    plain = trace(model, ["the", "강"])
    layers = [np.concatenate((layer.forward, layer.backward)) for layer in plain.layers]
    assert plain.weights == (1 / len(layers),) * len(layers)
    found = trace(model, ["the", "강"], weights=[0.2, 0.5, 0.3], gamma=2)
    expected = 2 * (0.2 * layers[0] + 0.5 * layers[1] + 0.3 * layers[2])
    np.testing.assert_allclose(found.mixture, expected, atol=1e-6)
    assert plain.layers[1].norms == pytest.approx(
        (np.linalg.norm(plain.layers[1].forward), np.linalg.norm(plain.layers[1].backward))
    )


def test_parts_of_characters_are_shown_as_bytes():
    assert window_text([177, 166, 260]) == "\\xb0\\xa5$"
    assert window_text([259, 257, 260]) == "^<257>$", "the word <S>"


@pytest.mark.parametrize(
    ("sentence", "options", "message"),
    [
        (["the", "강"], {"word": -1}, r"`word` .*0:the 1:강.*-1"),
        (["the", "강"], {"word": 2}, r"`word` .*0:the 1:강.*2"),
        ([], {}, r"`word` .*none"),
        (["the"], {"weights": [0.5, 0.5]}, r"`weights` .*\b3\b.*sum of 1"),
        (["the"], {"weights": [1, 1, 1]}, r"`weights` .*\b3\b.*sum of 1"),
        (["the"], {"weights": [float("nan"), 1, 1]}, r"`weights` .*\b3\b.*sum of 1"),
        (["the"], {"gamma": float("inf")}, r"`gamma`.*finite.*inf"),
        (["the"], {"gamma": float("nan")}, r"`gamma`.*finite.*nan"),
    ],
)
def test_errors(model, sentence, options, message):
    with pytest.raises(InputError, match=message):
        trace(model, sentence, **options)
