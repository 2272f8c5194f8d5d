import numpy as np
import torch

from elmokit.embed.precision import build_network
from elmokit.embed.unique_tokens import encode_distinct_tokens, find_distinct_tokens

from .models import toy_model


def test_every_distinct_word_is_encoded_once():
    calls = []

    def encode(words):
        calls.append(list(words))
        return np.zeros((len(words), 3), dtype=np.uint16)

    tokens = find_distinct_tokens([["a", "b", "a"], [], ["b", "</S>"]], encode)
    assert calls == [["<S>", "</S>", "a", "b"]]
    assert [s.tolist() for s in tokens.sentences] == [[0, 2, 3, 2, 1], [0, 1], [0, 3, 1, 1]]


def test_vectors_equal_the_plain_encoder_in_any_company():
    model = toy_model()
    network = build_network(model, precision="fp32", device=torch.device("cpu"))
    words = ["", "<S>", "a", "한국어", "x" * 40, *(f"w{i}" * (i % 6) for i in range(700))]
    ids = model.char_vocab.encode_words(words)
    together = encode_distinct_tokens(network, ids)
    with torch.inference_mode():
        plain = model.encode_tokens(model.encode_words(words))
    assert (together - plain).abs().max() <= 1e-6
    for i in (0, 2, 3, 4, 600):
        assert torch.equal(encode_distinct_tokens(network, ids[i : i + 1])[0], together[i])


def test_word_ids_are_looked_up():
    model = toy_model(words=True)
    network = build_network(model, precision="fp32", device=torch.device("cpu"))
    ids = model.encode_words(["bank", "unheard-of"]).numpy()
    vectors = encode_distinct_tokens(network, ids)
    assert torch.equal(vectors[0], model.token_encoder.embedding.weight[ids[0]])
    assert torch.equal(vectors[1], model.token_encoder.embedding.weight[3])  # <UNK>
