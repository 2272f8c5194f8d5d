"""The same sentence, the same vectors: alone, in any batch, in any order, beside any other."""

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.embed.embedder import Embedder
from elmokit.weights.model_dir import PretrainedBiLM

from ..builders.embedding_models import largest_difference, plain_layers, toy_model

WORDS = st.one_of(
    st.sampled_from(["I", "sat", "by", "the", "bank", "배", "를", ".", "<S>", "</S>", ""]),
    st.text(max_size=30),
)
SENTENCES = st.lists(st.lists(WORDS, max_size=15), max_size=12)


@cache
def embedder() -> Embedder:
    return Embedder(toy_model())


@given(SENTENCES, st.integers(1, 200), st.randoms(use_true_random=False))
def test_batch_and_order_change_no_bit(sentences, batch_tokens, random):
    expected = [embedder().embed([sentence])[0] for sentence in sentences]
    order = list(range(len(sentences)))
    random.shuffle(order)
    got = embedder().embed([sentences[i] for i in order], batch_tokens=batch_tokens)
    assert largest_difference(got, [expected[i] for i in order]) == 0


@given(SENTENCES.filter(len))
def test_padding_of_the_plain_network_changes_nothing(sentences):
    expected, _ = plain_layers(embedder().model, sentences)
    assert largest_difference(embedder().embed(sentences), expected) <= 2e-6


@given(SENTENCES, st.integers(0, 12))
def test_a_stream_may_be_cut_and_carried_on(sentences, cut):
    whole = embedder().embed(sentences, state="carry")
    first = list(embedder().stream(sentences[:cut], state="carry"))
    state = first[-1].state if first else None
    rest = embedder().stream(sentences[cut:], state="carry", initial_state=state)
    pieces = [sentence.vectors for sentence in [*first, *rest]]
    assert largest_difference(pieces, whole) == 0


@given(st.text(max_size=60))
def test_layer_0_knows_only_the_word(word):
    vectors = embedder().embed([[word], ["the", word, "bank"]], layers=0)
    np.testing.assert_array_equal(vectors[0][0], vectors[1][1])


@pytest.mark.parametrize("num_threads", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_released_small_shape_is_independent_of_company(num_threads):
    from elmokit.bilm.bilm import BiLMConfig
    from elmokit.bilm.lstmp import LSTMConfig

    model = PretrainedBiLM(BiLMConfig(lstm=LSTMConfig(cell_dim=1024, projection_dim=128))).eval()
    with torch.no_grad():  # rounding grows as in the seeded conformance cases
        for layer in (*model.forward_layers, *model.backward_layers):
            layer.projection_weight *= 2.4
    words = [f"w{i}" for i in range(40)]
    random = np.random.default_rng(0)
    sentences = [random.choice(words, size=n).tolist() for n in (60, 23, 22, 9, 8, 7, 3, 2, 1, 1)]
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        together, one_by_one = Embedder(model).embed(sentences), Embedder(model)
        alone = [one_by_one.embed([sentence])[0] for sentence in sentences]
    finally:
        torch.set_num_threads(before)
    assert largest_difference(together, alone) <= 2e-6
