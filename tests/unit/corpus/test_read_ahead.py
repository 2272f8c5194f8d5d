"""Items made in the background: order, limits, errors, and the end of the thread."""

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit.corpus.read_ahead import read_ahead


@pytest.fixture(scope="module", autouse=True)
def no_threads_are_left():
    before = threading.active_count()
    yield
    assert threading.active_count() <= before


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 9)), st.integers(1, 12))
def test_items_come_whole_and_in_order(items, limit):
    before = threading.active_count()
    assert list(read_ahead(items, limit=limit, weigh=lambda item: item)) == items
    assert threading.active_count() <= before


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
