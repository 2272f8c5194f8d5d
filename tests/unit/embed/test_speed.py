import pytest

from elmokit.embed.embedder import Embedder
from elmokit.embed.speed import (
    Ceilings,
    count_operations,
    measure_ceilings,
    measure_speed,
    sample_of,
)

from .models import random_sentences, toy_model


def test_ceilings_are_rates_of_this_machine():
    ceilings = measure_ceilings("fp32")
    assert 1e8 < ceilings.operations_per_second < 1e15
    assert 1e8 < ceilings.bytes_per_second < 1e13


def test_operations_are_those_of_the_shapes():
    model = toy_model(num_layers=1, cell_dim=8, projection_dim=8, words=True)
    gates = 4 * 8 * 8
    tokens, words = (2 + 2) + (1 + 2), 2 + 2
    expected = 2 * 2 * words * gates + 2 * 2 * tokens * gates
    assert count_operations(model.config, [["a", "b"], ["a"]]) == expected


def test_distinct_words_and_their_characters_count_once():
    model = toy_model()
    once = count_operations(model.config, [["bank"]])
    same = count_operations(model.config, [["bank", "bank"]])
    other = count_operations(model.config, [["bank", "a"]])
    lstm = model.config.lstm
    step = 4 * lstm.cell_dim * lstm.projection_dim
    projection = lstm.cell_dim * lstm.projection_dim
    per_token = 2 * 2 * (lstm.num_layers * (step + projection) + (lstm.num_layers - 1) * step)
    assert same - once == per_token
    assert other > same


def test_a_measurement_says_what_limits_it():
    embedder = Embedder(toy_model(), word_cache=False)
    sentences = random_sentences(20)
    speed = measure_speed(
        embedder, sentences, Ceilings(1e3, 1e15), sentences_at_once=8, seconds=0.05
    )
    assert speed.tokens_per_second > 0
    assert speed.limit == "arithmetic"
    idle = measure_speed(
        embedder, sentences, Ceilings(1e18, 1e18), sentences_at_once=8, seconds=0.05
    )
    assert idle.limit == "other work"
    assert idle.share_of_arithmetic < 0.3
    with pytest.raises(ValueError, match="nothing to measure"):
        measure_speed(embedder, [], Ceilings(1, 1), sentences_at_once=8, seconds=0.05)


def test_a_sample_keeps_the_order_and_leaves_out_empty_sentences():
    sentences = [["a"] * k for k in range(100)]
    sample = sample_of(sentences, max_sentences=10)
    lengths = [len(sentence) for sentence in sample]
    assert lengths == sorted(lengths)
    assert len(set(lengths)) == 10
    assert 0 not in lengths
    assert sample_of(sentences[:3], max_sentences=10) == sentences[1:3]
