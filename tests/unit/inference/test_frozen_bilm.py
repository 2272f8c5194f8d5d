"""Words of a frozen biLM: each distinct one goes through the token layer once."""

import numpy as np
import pytest
import torch

from elmokit.inference.elmo import ELMo, run_frozen
from elmokit.inference.frozen_bilm import FrozenBiLM

from ...builders.embedding_models import random_sentences, toy_model

SENTENCES = random_sentences(12)


@pytest.mark.parametrize("words", [False, True])
def test_rows_are_the_token_vectors_of_the_words(backend, words):
    model = toy_model(words=words)
    vectors, tokens = FrozenBiLM(model).encode(SENTENCES)
    assert len(set(tokens.words)) == len(tokens.words) == len(vectors)
    with torch.no_grad():
        expected = model.encode_tokens(model.encode_words(tokens.words))
    torch.testing.assert_close(torch.from_numpy(vectors), expected)
    for sentence, index in zip(SENTENCES, tokens.sentences, strict=True):
        assert [tokens.words[i] for i in index] == ["<S>", *sentence, "</S>"]


def test_kept_words_are_not_encoded_again(monkeypatch):
    bilm = FrozenBiLM(toy_model(), word_cache=True)
    first, _ = bilm.encode(SENTENCES)
    asked = []
    encode = bilm.engine.encode_tokens
    monkeypatch.setattr(
        bilm.engine, "encode_tokens", lambda ids: (asked.append(len(ids)), encode(ids))[1]
    )
    again, tokens = bilm.encode(SENTENCES)
    assert np.array_equal(first, again)
    assert asked == []
    bilm.encode([["unseen", *tokens.words]])
    assert asked == [1]


@pytest.mark.parametrize("wrong", [-1, 262, 65535, 65536 + 98])
def test_ids_that_the_model_does_not_have_are_refused(wrong):
    model = toy_model()
    ids = model.encode([["a"]])
    ids[0, 1, 2] = wrong
    with pytest.raises(ValueError, match=f"0 to 261, got {wrong}"):
        run_frozen(FrozenBiLM(model), ids)


def test_too_small_a_state_is_refused():
    model = toy_model()
    elmo = ELMo(model)
    state = elmo(model.encode([["a"]], boundaries=False)).state
    with pytest.raises(ValueError, match=r"`state`.*\b1 .*\b2\b"):
        elmo(model.encode([["a"], ["b"]], boundaries=False), state=state)
