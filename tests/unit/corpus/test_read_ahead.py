"""Items made in the background: order, limits, errors, and the end of the thread."""

import _thread
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture(scope="module", autouse=True)
def no_threads_are_left():
    before = _thread._count()
    yield
    assert_ended(before)


def assert_ended(before):
    """The last instructions of a thread come after it has told that it ended."""
    deadline = time.monotonic() + 5
    while _thread._count() > before and time.monotonic() < deadline:
        time.sleep(0.001)
    assert _thread._count() <= before


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 9)), st.integers(1, 12))
def test_items_come_whole_and_in_order(items, limit):
    from elmokit.corpus.read_ahead import read_ahead

    before = _thread._count()
    assert list(read_ahead(items, limit=limit, weigh=lambda item: item)) == items
    assert_ended(before)


def test_the_thread_runs_ahead_up_to_the_limit():
    from elmokit.corpus.read_ahead import read_ahead

    made = []

    def items():
        for number in range(100):
            made.append(number)
            yield number

    before = _thread._count()
    ahead = read_ahead(items(), limit=3)
    assert not made, "nothing begins before the first item is asked for"
    assert next(ahead) == 0
    deadline = time.monotonic() + 5
    while len(made) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert made == [0, 1, 2, 3, 4]  # one taken, three waiting, one in hand
    ahead.close()
    assert_ended(before)


def test_an_item_heavier_than_the_limit_goes_alone():
    from elmokit.corpus.read_ahead import read_ahead

    assert list(read_ahead(["a" * 50, "b", "c" * 70], limit=10, weigh=len))[2] == "c" * 70


def test_an_error_comes_after_the_items_before_it():
    from elmokit.corpus.read_ahead import read_ahead

    def items():
        yield 1
        yield 2
        raise OSError("the disk is gone")

    ahead = read_ahead(items(), limit=5)
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(OSError, match="the disk is gone"):
        next(ahead)


def test_a_source_that_cannot_be_closed_is_told_after_its_items():
    from elmokit.corpus.read_ahead import read_ahead

    class Source:
        def __init__(self):
            self.items = iter([1, 2])

        def __iter__(self):
            return self

        def __next__(self):
            return next(self.items)

        def close(self):
            raise OSError("stale file handle")

    ahead = read_ahead(Source(), limit=5)
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(OSError, match="stale file handle"):
        next(ahead)


def test_closing_closes_the_source():
    from elmokit.corpus.read_ahead import read_ahead

    closed = []

    def items():
        try:
            yield from range(100)
        finally:
            closed.append(True)

    ahead = read_ahead(items(), limit=1)
    next(ahead)
    ahead.close()
    assert closed == [True]


def test_a_limit_of_nothing_is_refused():
    from elmokit.corpus.read_ahead import read_ahead

    with pytest.raises(ValueError, match=r"`limit` .*\b1, .*\b0\b"):
        read_ahead([1], limit=0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("fails", ["notify_all", "__enter__"])
def test_a_thread_that_cannot_tell_that_it_ended_is_not_waited_for(monkeypatch, fails):
    """As without memory."""
    from elmokit.corpus import read_ahead as module

    real = getattr(threading.Condition, fails)

    def items():
        reader = threading.get_ident()

        def denied(condition, *arguments):
            if threading.get_ident() == reader:
                raise MemoryError
            return real(condition, *arguments)

        monkeypatch.setattr(threading.Condition, fails, denied)
        raise OSError("the disk is gone")
        yield

    monkeypatch.setattr(module, "CHECK_SECONDS", 0.05)
    with pytest.raises((OSError, MemoryError), match=r"disk is gone|ended without a result"):
        next(module.read_ahead(items(), limit=5))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_thread_that_ends_before_it_begins_is_not_waited_for(monkeypatch):
    """Without memory Python cannot even call what the thread was to run."""
    from elmokit.corpus import read_ahead as module

    def denied(reader):
        raise MemoryError

    monkeypatch.setattr(module, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(module._Reader, "_run", denied)
    with pytest.raises(MemoryError, match="ended without a result"):
        next(module.read_ahead([1], limit=5))
