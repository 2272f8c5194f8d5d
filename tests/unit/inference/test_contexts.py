"""Sequences with common beginnings are read once for each beginning, with the same bits."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.inference.contexts import (
    batch_by_length,
    cut_batches,
    fill_buffers,
    find_contexts,
    read_contexts,
)
from elmokit.inference.frozen_bilm import FrozenBiLM
from elmokit.inference.layers_and_states import LSTMState

from ...builders.embedding_models import toy_model

SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=7), min_size=1, max_size=12)


@given(SEQUENCES)
def test_two_tokens_have_one_context_if_the_same_was_read_up_to_them(sequences):
    sequences.sort()
    contexts = find_contexts([np.array(sequence) for sequence in sequences])
    beginnings = [tuple(one[: k + 1]) for one in sequences for k in range(len(one))]
    numbers = contexts.numbers.tolist()
    assert dict(zip(beginnings, numbers, strict=True)) == dict(
        reversed(list(zip(beginnings, numbers, strict=True)))
    )
    assert sorted(set(numbers)) == list(range(len(set(beginnings))))
    segments = [segment for part in contexts.rounds for segment in part]
    assert sum(len(segment.tokens) for segment in segments) == len(set(beginnings))


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_outputs_are_those_of_each_sequence_by_itself(backend, direction):
    bilm = FrozenBiLM(toy_model())
    bank = "I sat by the bank"
    texts = [bank, "I sat by", bank, "I sat of a river", "the bank", "I"]
    vectors, tokens = bilm.encode([text.split() for text in texts])
    turn = 1 if direction == "forward" else -1
    sequences = sorted((words[::turn] for words in tokens.sentences), key=lambda one: one.tolist())
    contexts = find_contexts(sequences)
    assert len(contexts.rounds) > 2
    start = LSTMState.zeros(bilm.engine.config.lstm, 1).direction(direction)
    outputs = np.full((contexts.numbers.max() + 1, bilm.engine.config.lstm.projection_dim), np.nan)

    def keep(rows, numbers):
        assert np.isnan(outputs[numbers]).all(), "each is read once"
        outputs[numbers] = rows

    read_contexts(bilm.engine, direction, vectors, contexts, start, keep)
    expected = []
    for sequence in sequences:
        rows = np.empty((len(sequence), outputs.shape[1]))

        def store(values, _, position, rows=rows):
            rows[position] = values

        bilm.engine.read(direction, vectors, [sequence[::turn]], start, on_top=store)
        expected.append(rows[::turn])
    assert np.array_equal(outputs[contexts.numbers], np.concatenate(expected))


@given(st.lists(st.integers(2, 30)), st.integers(1, 60))
def test_batches_hold_every_sentence_once_by_falling_length(lengths, max_tokens):
    batches = list(batch_by_length(lengths, max_tokens=max_tokens))
    order = [index for batch in batches for index in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[i] for i in order] == sorted(lengths, reverse=True)
    for batch in batches:
        assert len(batch) == 1 or sum(lengths[i] for i in batch) <= max_tokens


@given(st.lists(st.integers(2, 5)), st.integers(1, 14), st.none() | st.integers(1, 4))
def test_batches_of_an_order_are_as_full_as_the_bounds_allow(lengths, max_tokens, most):
    def fits(batch):
        return sum(lengths[i] for i in batch) <= max_tokens and len(batch) <= (most or 99)

    order = list(range(len(lengths)))[::-1]
    batches = list(cut_batches(order, lengths, max_tokens=max_tokens, max_sentences=most))
    assert [index for batch in batches for index in batch] == order
    assert all(len(batch) == 1 or fits(batch) for batch in batches)
    assert not any(fits([*batch, after[0]]) for batch, after in pairwise(batches))


@given(st.lists(st.lists(st.just("w"), max_size=9)), st.integers(1, 40))
def test_buffers_keep_the_order_and_the_bound(sentences, max_tokens):
    buffers = list(fill_buffers(iter(sentences), max_tokens=max_tokens))
    assert [s for buffer in buffers for s in buffer] == sentences
    for buffer in buffers:
        assert sum(len(s) + 2 for s in buffer[:-1]) < max_tokens
    assert all(sum(len(s) + 2 for s in buffer) >= max_tokens for buffer in buffers[:-1])
