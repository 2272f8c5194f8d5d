"""Words of a frozen biLM: each distinct one goes through the token layer once."""

import pytest
import torch

from elmokit.inference.elmo import run_frozen
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


@pytest.mark.parametrize("wrong", [-1, 262, 65535, 65536 + 98])
def test_ids_that_the_model_does_not_have_are_refused(wrong):
    model = toy_model()
    ids = model.encode([["a"]])
    ids[0, 1, 2] = wrong
    with pytest.raises(ValueError, match=f"0 to 261, got {wrong}"):
        run_frozen(FrozenBiLM(model), ids)
