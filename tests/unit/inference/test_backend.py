import numpy as np
import pytest
import torch

from elmokit.inference.contexts import find_distinct_tokens
from elmokit.inference.engine import Engine
from elmokit.inference.numpy_backend import NumPyNetwork
from elmokit.inference.torch_backend import ModuleNetwork

from ...builders.embedding_models import network_of, random_sentences, toy_model


def test_vectors_equal_the_plain_encoder_in_any_company(backend):
    model = toy_model()
    network = network_of(model)
    words = ["", "<S>", "a", "한국어", "x" * 40, *(f"w{i}" * (i % 6) for i in range(700))]
    ids = model.char_vocab.encode_words(words)
    together = network.encode_tokens(ids)
    with torch.inference_mode():
        plain = model.encode_tokens(model.encode_words(words))
    assert np.abs(together - plain.numpy()).max() <= 1e-6
    for i in (0, 2, 3, 4, 600):
        assert np.array_equal(network.encode_tokens(ids[i : i + 1])[0], together[i])


def test_word_ids_are_looked_up(backend):
    model = toy_model(words=True)
    network = network_of(model)
    ids = model.ids_of_words(["bank", "unheard-of"])
    vectors = torch.from_numpy(network.encode_tokens(ids))
    assert torch.equal(vectors[0], model.token_encoder.embedding.weight[ids[0]])
    assert torch.equal(vectors[1], model.token_encoder.embedding.weight[3])  # <UNK>


@pytest.mark.parametrize("changes", [{}, {"projection_dim": 24}])
def test_every_backend_computes_the_same_layers(changes):
    """Kernels, NumPy, and PyTorch, which is for other devices."""
    model = toy_model(**changes)
    arrays, tokens = model.arrays(), find_distinct_tokens(random_sentences(30))
    networks = [
        network_of(model),
        NumPyNetwork(model.config, arrays),
        ModuleNetwork(model.config, arrays, use_bf16=False, device="cpu"),
    ]
    outputs = []
    for network in networks:
        engine = Engine(network)
        vectors = engine.encode_tokens(model.ids_of_words(tokens.words))
        outputs.append(engine.run(vectors, tokens.sentences))
    for output in outputs[1:]:
        for ours, theirs in zip(outputs[0].vectors, output.vectors, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=0)
        np.testing.assert_allclose(output.state.cell, outputs[0].state.cell, atol=1e-5, rtol=0)


def test_pytorch_computes_in_bf16():
    """Near fp32, and another arithmetic; a GPU has it for int8, too."""
    model = toy_model(cell_dim=64, projection_dim=32)
    network = ModuleNetwork(model.config, model.arrays(), use_bf16=True, device="cpu")
    ids = model.ids_of_words(["bank", "한국어"])
    rough, exact = network.encode_tokens(ids), network_of(model).encode_tokens(ids)
    assert 0 < np.abs(rough - exact).max() < 0.05 * np.abs(exact).max()
