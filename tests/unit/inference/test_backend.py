import numpy as np
import pytest
import torch

from elmokit.inference import kernel_backend, numpy_backend, torch_backend
from elmokit.inference.contexts import find_distinct_tokens
from elmokit.inference.torch_backend import ModuleEngine

from ...builders.embedding_models import (
    engine_of,
    largest_difference,
    plain_layers,
    random_sentences,
    toy_model,
)


@pytest.mark.parametrize("words", [False, True])
def test_later_changes_of_a_model_have_no_effect(backend, words):
    model = toy_model(words=words)
    engine = engine_of(model)
    ids = model.ids_of_words(["bank", "river"])
    before = engine.encode_tokens(ids).copy()
    with torch.no_grad():
        for weights in model.parameters():
            weights *= 2
    np.testing.assert_array_equal(engine.encode_tokens(ids), before)


def test_vectors_equal_the_plain_encoder_in_any_company(backend, monkeypatch):
    monkeypatch.setattr(kernel_backend, "WORDS_PER_CHUNK", 100)
    monkeypatch.setattr(numpy_backend, "MAX_RESPONSES", 12_000)  # of 8 filters: some 100 words
    model = toy_model()
    engine = engine_of(model)
    words = ["", "<S>", "a", "한국어", "x" * 40, *(f"w{i}" * (i % 6) for i in range(700))]
    ids = model.char_vocab.encode_words(words)
    together = engine.encode_tokens(ids)
    with torch.inference_mode():
        plain = model.encode_tokens(model.encode_words(words))
    assert np.abs(together - plain.numpy()).max() <= 1e-6
    for i in (0, 2, 3, 4, 600):
        assert np.array_equal(engine.encode_tokens(ids[i : i + 1])[0], together[i])


@pytest.mark.parametrize("changes", [{}, {"projection_dim": 24}])
def test_pytorch_computes_the_same_layers(changes, monkeypatch):
    """It is for other devices; kernels and NumPy are in `test_engine.py`."""
    monkeypatch.setattr(torch_backend, "MAX_CHARACTERS_PER_CHUNK", 300)  # 16 or 32 words of 61
    monkeypatch.setattr(torch_backend, "MAX_GATE_VALUES", 2000)
    model = toy_model(**changes)
    sentences = [*random_sentences(30), [f"w{i}" * (i % 6 + 1) for i in range(48)]]
    engine = ModuleEngine(model.config, model.arrays(), use_bf16=False, device="cpu")
    tokens = find_distinct_tokens(sentences)
    output = engine.run(engine.encode_tokens(model.ids_of_words(tokens.words)), tokens.sentences)
    expected, state = plain_layers(model, sentences)
    assert largest_difference(output.vectors, expected) <= 1e-5
    np.testing.assert_allclose(output.state.cell, state.cell, atol=1e-5, rtol=0)


def test_pytorch_computes_in_bf16():
    """Near fp32, and another arithmetic; a GPU has it for int8, too."""
    model = toy_model(cell_dim=64, projection_dim=32)
    engine = ModuleEngine(model.config, model.arrays(), use_bf16=True, device="cpu")
    ids = model.ids_of_words(["bank", "한국어"])
    rough, exact = engine.encode_tokens(ids), engine_of(model).encode_tokens(ids)
    assert 0 < np.abs(rough - exact).max() < 0.05 * np.abs(exact).max()
