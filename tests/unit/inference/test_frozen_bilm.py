"""Words of a frozen biLM: each distinct one goes through the token layer once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from elmokit.bilm.bilm import BiLMState
from elmokit.embed.embedder import Embedder
from elmokit.inference.elmo import run_frozen
from elmokit.inference.frozen_bilm import (
    ENTRY_BYTES,
    NUM_STREAMS,
    FrozenBiLM,
    WordCache,
    compute_layers,
    warm_state,
    warm_text,
)

from ...builders.embedding_models import largest_difference, random_sentences, toy_model


@pytest.mark.parametrize("wrong", [-1, 262, 65535, 65536 + 98])
def test_ids_that_the_model_does_not_have_are_refused(wrong):
    model = toy_model()
    ids = model.encode([["a"]])
    ids[0, 1, 2] = wrong
    with pytest.raises(ValueError, match=f"0 to 261, got {wrong}"):
        run_frozen(FrozenBiLM(model), ids)


ENTRY = ENTRY_BYTES + 2 * 4


def fill(cache, words):
    """Look words up and keep those that were missing; each vector tells its word."""
    vectors, missing = cache.read(words)
    new = np.array([[ord(words[i])] * 2 for i in missing], np.float32).reshape(-1, 2)
    vectors[missing] = new
    cache.write([words[i] for i in missing], new)
    assert [chr(int(v[0])) for v in vectors] == list(words)
    return [words[i] for i in missing]


def test_the_word_used_longest_ago_goes_first():
    cache = WordCache(2, max_bytes=3 * ENTRY)
    fill(cache, list("abc"))
    fill(cache, list("a"))
    assert fill(cache, list("d")) == ["d"]
    assert fill(cache, list("ac")) == []
    assert fill(cache, list("b")) == ["b"]
    assert len(cache) == 3
    assert fill(cache, list("efghij")) == list("efghij"), "more than there is room for"
    assert len(cache) == 3
    assert fill(WordCache(2, max_bytes=0), list("ab")) == ["a", "b"]
    texts = ["x" * 256, "x" * 257, b"x" * 300]  # ids of a word may take more bytes than its text
    cache.write(texts, np.zeros((3, 2), np.float32))
    assert cache.read(texts)[1].tolist() == [1]


@pytest.mark.parametrize("words", [False, True])
def test_layers_of_padded_ids_are_those_of_the_modules(words):
    model = toy_model(words=words)
    ids = model.encode(random_sentences(9))
    with torch.no_grad():
        out = model(ids)
    expected = out.layers[:, out.mask].numpy()
    np.testing.assert_allclose(compute_layers(model, ids.numpy()), expected, atol=1e-5)


def test_a_model_without_neutral_text_gets_that_of_the_package(caplog):
    assert warm_text(("the bank",)) == ("the bank",)
    assert not caplog.records
    own = warm_text(())
    assert len(own) >= 2 * NUM_STREAMS
    assert all(line.split() for line in own)
    assert "no neutral text" in caplog.text


def test_many_threads_share_an_embedder():
    model = toy_model()
    embedder = Embedder(model)
    batches = [random_sentences(8, seed=seed) for seed in range(12)]
    expected = [Embedder(model, word_cache=False).embed(batch) for batch in batches]
    with ThreadPoolExecutor(len(batches)) as pool:
        for got, wanted in zip(pool.map(embedder.embed, batches), expected, strict=True):
            assert largest_difference(got, wanted) == 0


def test_the_warm_state_is_the_mean_after_the_sentences_of_carried_streams():
    model = toy_model(warm_text=[f"word{k} stands {'here ' * (k % 4)}." for k in range(20)])
    rounds = [line.split() for line in model.warm_text][: 2 * NUM_STREAMS]
    warm = warm_state(FrozenBiLM(model), model.warm_text)
    for axis, direction in enumerate(("forward", "backward")):
        hidden, cell = [], []
        for stream in range(NUM_STREAMS):
            state = BiLMState.zeros(model.config.lstm, 1).direction(direction)
            for words in (rounds[stream], rounds[NUM_STREAMS + stream]):
                read = ["<S>", *words] if direction == "forward" else ["</S>", *reversed(words)]
                with torch.no_grad():
                    x = model.encode_tokens(model.encode_words(read)).unsqueeze(0)
                    _, state = model.run_direction(direction, x, state=state)
            hidden.append(state[0])
            cell.append(state[1])
        for ours, theirs in ((warm.hidden, hidden), (warm.cell, cell)):
            mean = torch.stack(theirs).mean(0)
            torch.testing.assert_close(torch.from_numpy(ours[:, axis].copy()), mean)
    assert warm.num_rows == 1
    few = ["the bank", "a river", "I sat"]  # are read again until every stream has one
    again, cycled = (warm_state(FrozenBiLM(model), text) for text in (few, (few * 3)[:NUM_STREAMS]))
    assert np.array_equal(again.cell, cycled.cell)
    assert np.array_equal(again.hidden, cycled.hidden)
