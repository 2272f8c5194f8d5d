"""Resumed equals uninterrupted; ranks together equal one process; nothing is lost or made up."""

import json
import tempfile
from contextlib import contextmanager
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

lengths = st.lists(st.integers(1, 23), min_size=1, max_size=30)
# words of shards overlap in part, some are outside the vocabulary, some look like boundaries
words = st.sampled_from([*"abcdefgh", "one", "two", "한국", "<S>", "</S>", "<UNK>", "x" * 60])
geometries = st.fixed_dictionaries(
    {
        "batch_size": st.sampled_from([1, 2, 4, 6]),
        "num_steps": st.integers(1, 9),
        "seed": st.integers(0, 3),
        "shuffle": st.sampled_from(["sentences", "none"]),
    }
)


@st.composite
def corpora(draw, words=words):
    return [draw(st.lists(words, min_size=n, max_size=n)) for n in draw(lengths)]


@contextmanager
def stream_maker(corpus, tokens_per_shard, geometry):
    from elmokit.corpus.shards import write_shards
    from elmokit.corpus.stream import WindowStream
    from elmokit.text.char_vocab import CharVocab
    from elmokit.text.word_vocab import WordVocab

    word_vocab = WordVocab(["<S>", "</S>", "<UNK>", *"abcd", "one", "한국"])
    char_vocab = CharVocab()
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr("elmokit.corpus.order_and_packing.SHARDS_TOGETHER", 3)
        patch.setattr("elmokit.corpus.order_and_packing._WORDS_PER_CHUNK", 4)
        shards = write_shards(corpus, directory, tokens_per_shard=tokens_per_shard)
        assume(shards.num_targets >= geometry["batch_size"] * geometry["num_steps"])
        yield lambda **more: WindowStream(shards, word_vocab, char_vocab, **geometry, **more)


def assert_same_window(one, other):
    assert (one.restarts is None) == (other.restarts is None)
    for name, array in vars(one).items():
        if array is None:
            continue
        assert array.dtype == getattr(other, name).dtype
        np.testing.assert_array_equal(array, getattr(other, name), err_msg=name)


def rows_of(window):
    """Everything a rank trains on, row by row and without the numbering of distinct words."""
    return [
        window.char_ids[window.forward_inputs],
        window.char_ids[window.backward_inputs],
        window.word_ids[window.forward_inputs],
        window.word_ids[window.backward_inputs],
        window.forward_targets,
        window.backward_targets,
    ]


@given(
    corpus=corpora(),
    tokens_per_shard=st.integers(1, 60),
    geometry=geometries,
    stop=st.integers(1, 40),
    share=st.sampled_from([0.0, 0.5]),
)
def test_resuming_equals_never_having_stopped(corpus, tokens_per_shard, geometry, stop, share):
    with stream_maker(corpus, tokens_per_shard, geometry) as make_stream:
        steps = list(islice(make_stream(restart_share=share), stop + 5))  # goes over epoch ends
        state = json.loads(json.dumps(steps[stop - 1][1]))
        resumed = list(islice(make_stream(restart_share=share, state=state), 5))
    for (window, state), (window_again, state_again) in zip(steps[stop:], resumed, strict=True):
        assert_same_window(window, window_again)
        assert state == state_again


@given(
    corpus=corpora(),
    tokens_per_shard=st.integers(1, 60),
    geometry=geometries,
    world_size=st.sampled_from([2, 3]),
)
def test_rows_of_all_ranks_are_the_window(corpus, tokens_per_shard, geometry, world_size):
    assume(geometry["batch_size"] % world_size == 0)
    with stream_maker(corpus, tokens_per_shard, geometry) as make_stream:
        alone = list(islice(make_stream(), 6))
        ranks = [
            list(islice(make_stream(rank=rank, world_size=world_size), 6))
            for rank in range(world_size)
        ]
    for step, (window, state) in enumerate(alone):
        parts = [rows_of(rank[step][0]) for rank in ranks]
        for whole, *shares in zip(rows_of(window), *parts, strict=True):
            np.testing.assert_array_equal(whole, np.concatenate(shares))
        assert all(rank[step][1] == state for rank in ranks)
        for rank in ranks:  # a rank gets no words that only others need
            window = rank[step][0]
            used = np.union1d(window.forward_inputs, window.backward_inputs)
            assert used.tolist() == list(range(len(window.char_ids)))


@given(
    corpus=corpora(words.filter(lambda word: word[0] != "<")),
    tokens_per_shard=st.integers(1, 60),
    geometry=geometries,
)
def test_rows_are_whole_sentences_read_both_ways(corpus, tokens_per_shard, geometry):
    from elmokit.text.char_vocab import CharVocab

    char_vocab = CharVocab()
    word_of = {char_vocab.encode_word(w).tobytes(): w for s in corpus for w in [*s, "<S>", "</S>"]}
    with stream_maker(corpus, tokens_per_shard, geometry) as make_stream:
        stream = make_stream()
        windows = [window for window, _ in islice(stream, 12)]
    for row in range(geometry["batch_size"]):
        for direction, begin, end in (("forward", "<S>", "</S>"), ("backward", "</S>", "<S>")):
            rows = [
                (w.char_ids[getattr(w, f"{direction}_inputs")[row]],
                 getattr(w, f"{direction}_targets")[row])
                for w in windows
            ]  # fmt: skip
            inputs = [word_of[chars.tobytes()] for chars, _ in rows for chars in chars]
            targets = [word_id for _, ids in rows for word_id in ids.tolist()]
            starts = [i for i, word in enumerate(inputs) if word == begin]
            assert starts[0] == 0
            sentences = [tuple(inputs[i + 1 : j]) for i, j in pairwise([*starts, len(inputs)])]
            known = {tuple(s) if direction == "forward" else tuple(s[::-1]) for s in corpus}
            assert set(sentences[:-1]) <= known
            assert any(s[: len(sentences[-1])] == sentences[-1] for s in known)
            following = [end if i + 1 in starts else inputs[i + 1] for i in range(len(inputs) - 1)]
            assert targets[:-1] == stream.word_vocab.encode(following).tolist()
