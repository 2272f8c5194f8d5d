import numpy as np
import torch

from ...builders.embedding_models import network_of, toy_model


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
