import pytest

from elmokit.embed import speed
from elmokit.embed.embedder import Embedder
from elmokit.embed.speed import (
    Ceilings,
    count_operations,
    measure_ceilings,
    measure_speed,
    sample_of,
)

from ...builders.embedding_models import random_sentences, toy_model


@pytest.mark.parametrize("kernels", ["compiled", "none"])
def test_ceilings_count_operations_and_bytes(monkeypatch, kernels):
    seconds = iter((2.0, 4.0))

    def timed(work):
        work()
        return next(seconds)

    monkeypatch.setattr(speed, "_best", timed)
    monkeypatch.setattr(speed, "CEILING_ROWS", 3)
    monkeypatch.setattr(speed, "CEILING_DIM", 64)
    monkeypatch.setattr(speed, "MEMORY_VALUES", 1000)
    if kernels == "none":
        monkeypatch.setattr(speed, "load_kernels", lambda: None)
    assert measure_ceilings("fp32") == Ceilings(2 * 3 * 64 * 64 / 2.0, 4 * 1000 / 4.0)


def test_the_best_of_some_times_counts_but_not_the_first(monkeypatch):
    clock = iter((0, 1, 10, 15, 20, 23))  # three runs: 1 to warm up, 5, 3
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(clock))
    assert speed._best(lambda: None, repeats=2) == 3


def test_operations_are_those_of_the_shapes():
    model = toy_model(num_layers=1, cell_dim=8, projection_dim=8, words=True)
    gates = 4 * 8 * 8
    tokens = (2 + 2) + (1 + 2)
    expected = 2 * 2 * 2 * tokens * gates
    assert count_operations(model.config, [["a", "b"], ["a"]]) == expected


def test_distinct_words_and_their_characters_count_once():
    model = toy_model()
    once = count_operations(model.config, [["bank"]])
    same = count_operations(model.config, [["bank", "bank"]])
    lstm = model.config.lstm
    step = 4 * lstm.cell_dim * lstm.projection_dim
    projection = lstm.cell_dim * lstm.projection_dim
    per_token = 2 * 2 * lstm.num_layers * (2 * step + projection)
    assert same - once == per_token


def test_a_new_word_costs_its_characters_and_what_every_word_costs():
    model = toy_model()  # filters of width 1, 2, 3, a highway, a projection
    same = count_operations(model.config, [["bank", "bank"]])
    other = count_operations(model.config, [["bank", "a"]])
    characters = len("<a>")  # the ends of a word are characters, too
    filters, dim = 4 + 8 + 8, 8
    convolutions = characters * (1 * 4 + 2 * 8 + 3 * 8) * 4
    every_word = 2 * filters**2 + filters * dim
    assert other - same == 2 * (convolutions + every_word)


def test_a_measurement_says_what_limits_it():
    embedder = Embedder(toy_model(), word_cache=False)
    sentences = random_sentences(20)
    busy = measure_speed(
        embedder, sentences, Ceilings(1e3, 1e15), sentences_at_once=8, seconds=0.05
    )
    assert busy.tokens_per_second > 0
    assert busy.limit == "arithmetic"
    idle = measure_speed(
        embedder, sentences, Ceilings(1e18, 1e18), sentences_at_once=8, seconds=0.05
    )
    assert idle.limit == "other work"
    assert idle.share_of_arithmetic < 0.3
    with pytest.raises(ValueError, match="`sentences`"):
        measure_speed(embedder, [], Ceilings(1, 1), sentences_at_once=8, seconds=0.05)


def test_a_sample_keeps_the_order_and_leaves_out_empty_sentences():
    sentences = [["a"] * k for k in range(100)]
    sample = sample_of(sentences, max_sentences=10)
    lengths = [len(sentence) for sentence in sample]
    assert lengths == sorted(lengths)
    assert len(set(lengths)) == 10
    assert 0 not in lengths
    assert sample_of(sentences[:3], max_sentences=10) == sentences[1:3]
