import threading
import time
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit.corpus.read_ahead import read_ahead
from elmokit.corpus.shards import write_shards
from elmokit.corpus.stream import WindowStream
from elmokit.text.char_vocab import SENTENCE_BEGIN, CharVocab
from elmokit.text.word_vocab import WordVocab


@pytest.fixture
def make_stream(tmp_path):
    sentences = [[f"w{i}"] * (1 + i % 7) for i in range(40)]
    shards = write_shards(sentences, tmp_path, tokens_per_shard=30)
    vocab = WordVocab(["<S>", "</S>", "<UNK>", *(f"w{i}" for i in range(30))])

    def make(**settings):
        settings = {"batch_size": 4, "num_steps": 5} | settings
        return WindowStream(shards, vocab, CharVocab(), **settings)

    return make


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 2}, r"batch_size .*\b4 .*\b2\b"),
        ({"num_steps": 6}, r"num_steps .*\b5 .*\b6\b"),
        ({"seed": 3}, r"seed .*\b0 .*\b3\b"),
        ({"shuffle": "none"}, "shuffle .*'sentences' .*'none'"),
    ],
)
def test_resume_with_other_settings_is_refused(make_stream, settings, message):
    state = next(iter(make_stream()))[1]
    with pytest.raises(ValueError, match=message):
        make_stream(state=state, **settings)


def test_a_state_of_another_version_is_refused(make_stream):
    state = next(iter(make_stream()))[1]
    with pytest.raises(ValueError, match=rf"version 2, .*version {state['version']}\."):
        make_stream(state=state | {"version": 2})


def test_a_corpus_must_fill_one_window(make_stream):
    """It has 155 words in 40 sentences, whose ends are predicted, too."""
    assert next(iter(make_stream(batch_size=39)))[0].num_targets == 195
    with pytest.raises(ValueError, match=r"195 targets .*28 rows x 7"):
        make_stream(batch_size=28, num_steps=7)


def begins(window):
    """Whether each row begins with ``<S>``."""
    return window.char_ids[window.forward_inputs[:, 0], 1] == SENTENCE_BEGIN + 1


def test_a_share_of_the_rows_begins_each_window_with_a_new_sentence(make_stream):
    windows = [window for window, _ in islice(make_stream(restart_share=0.4), 100)]
    counts = [int(window.restarts.sum()) for window in windows]
    assert set(counts) == {1, 2}  # of 4 rows
    assert np.mean(counts) == pytest.approx(1.6, abs=0.15)
    assert np.mean([window.restarts for window in windows], axis=0) == pytest.approx(0.4, abs=0.15)
    assert all(begins(window)[window.restarts].all() for window in windows)
    others = np.concatenate([begins(window)[~window.restarts] for window in windows])
    assert 0.1 < others.mean() < 0.5
    again = [window for window, _ in islice(make_stream(restart_share=0.4, seed=1), 100)]
    assert any((a.restarts != b.restarts).any() for a, b in zip(windows, again, strict=True))


@pytest.fixture(scope="module", autouse=True)
def no_threads_are_left():
    before = threading.active_count()
    yield
    assert threading.active_count() <= before


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 9)), st.integers(1, 12))
def test_items_come_whole_and_in_order(items, limit):
    assert list(read_ahead(items, limit=limit, weigh=lambda item: item)) == items


def test_the_thread_runs_ahead_up_to_the_limit_and_closes_its_source():
    made, closed = [], []

    def items():
        try:
            for number in range(100):
                made.append(number)
                yield number
        finally:
            closed.append(True)

    ahead = read_ahead(items(), limit=3)
    assert not made, "nothing begins before the first item is asked for"
    assert next(ahead) == 0
    deadline = time.monotonic() + 5
    while len(made) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.02)
    assert made == [0, 1, 2, 3, 4]  # one taken, three waiting, one in hand
    ahead.close()
    assert closed == [True]


class Source:
    """Fails at its end, or when it is closed."""

    def __init__(self, fails):
        self._numbers, self._fails = iter([1, 2]), fails

    def __iter__(self):
        return self

    def __next__(self):
        number = next(self._numbers, None)
        if number is None:
            raise OSError("gone") if self._fails == "reading" else StopIteration
        return number

    def close(self):
        if self._fails == "closing":
            raise OSError("gone")


@pytest.mark.parametrize("fails", ["reading", "closing"])
def test_an_error_comes_after_the_items_before_it(fails):
    ahead = read_ahead(Source(fails), limit=5)
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(OSError, match="gone"):
        next(ahead)
