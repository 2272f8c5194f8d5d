"""Input prepared ahead by a background thread."""

import _thread
import functools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
CLOSE_SECONDS = 1.0
"""Longest wait for the thread to end."""
CHECK_SECONDS = 1.0
"""How often a waiting consumer looks whether the thread is alive: without memory, it can end, even
before it begins, without being able to say so."""


def read_ahead(
    items: Iterable[T], *, limit: int, weigh: Callable[[T], int] = lambda item: 1
) -> Generator[T, None, None]:
    """Yield items that a thread prepares ahead, in order.

    Errors of the thread are raised after the items before them. The thread starts with the first
    request and ends when the iterator is exhausted or closed.

    Args:
        items: Iterated in the thread only.
        limit: Largest total weight of waiting items; a single item may exceed it.
        weigh: Weight of an item.
    """
    if limit < 1:
        raise ValueError(f"`limit` must be at least 1, got {limit}.")
    return _consume(_Reader(items, limit, weigh))


class _Reader(Generic[T]):
    def __init__(self, items: Iterable[T], limit: int, weigh: Callable[[T], int]) -> None:
        self._items, self._limit, self._weigh = items, limit, weigh
        self._ready: deque[tuple[T, int]] = deque()
        self._weight = 0
        self._is_finished = self._is_closed = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._thread: Callable[[], object | None] = lambda: None
        """Returns what the thread runs, which is gone when the thread is."""

    def start(self) -> None:
        """Start the thread, which does not keep the process from ending.

        `threading.Thread.start` waits for the thread to begin, forever if there is no memory for
        that.
        """
        run = functools.partial(self._run)
        self._thread = weakref.ref(run)
        _thread.start_new_thread(run, ())

    def take(self) -> tuple[T] | None:
        """Wait for the next item; None at the end."""
        with self._changed:
            while not self._changed.wait_for(
                lambda: self._ready or self._is_finished, CHECK_SECONDS
            ):
                if self._thread() is None:
                    raise MemoryError("the thread that reads ahead ended without a result")
            if self._ready:
                item, weight = self._ready.popleft()
                self._weight -= weight
                self._changed.notify_all()
                return (item,)
        if self._error is not None:
            raise self._error
        return None

    def close(self) -> None:
        """End the thread; one that hangs in its source is abandoned."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._is_finished or self._thread() is None, CLOSE_SECONDS
            )

    def _run(self) -> None:
        iterator: Any = iter(())
        try:
            iterator = iter(self._items)
            for item in iterator:
                if not self._put(item, self._weigh(item)):
                    break
            if hasattr(iterator, "close"):
                iterator.close()
        except BaseException as error:  # raised by `take`
            self._error = error
        finally:
            with self._changed:
                self._is_finished = True
                self._changed.notify_all()

    def _put(self, item: T, weight: int) -> bool:
        """Wait for room and add an item; return whether more are wanted."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closed or not self._ready or self._weight + weight <= self._limit
            )
            self._ready.append((item, weight))
            self._weight += weight
            self._changed.notify_all()
            return not self._is_closed


def _consume(reader: _Reader[T]) -> Generator[T, None, None]:
    reader.start()
    try:
        while (got := reader.take()) is not None:
            yield got[0]
    finally:
        reader.close()
