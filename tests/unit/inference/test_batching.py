from hypothesis import given
from hypothesis import strategies as st

from elmokit.inference.batching import batch_by_length, fill_buffers


@given(st.lists(st.integers(2, 30)), st.integers(1, 60))
def test_batches_hold_every_sentence_once_by_falling_length(lengths, max_tokens):
    batches = list(batch_by_length(lengths, max_tokens=max_tokens))
    order = [index for batch in batches for index in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[i] for i in order] == sorted(lengths, reverse=True)
    for batch in batches:
        assert len(batch) == 1 or sum(lengths[i] for i in batch) <= max_tokens


@given(st.lists(st.lists(st.just("w"), max_size=9)), st.integers(1, 40))
def test_buffers_keep_the_order_and_the_bound(sentences, max_tokens):
    buffers = list(fill_buffers(iter(sentences), max_tokens=max_tokens))
    assert [s for buffer in buffers for s in buffer] == sentences
    for buffer in buffers:
        assert sum(len(s) + 2 for s in buffer[:-1]) < max_tokens
