"""Input prepared ahead by a background thread."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
CLOSE_SECONDS = 1.0
"""Longest wait for the thread to end."""
CHECK_SECONDS = 1.0
"""How often a waiting consumer looks whether the thread is alive: without memory, it can end
without being able to say so."""


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
    reader = _Reader(items, limit, weigh)
    thread = threading.Thread(target=reader.run, daemon=True)
    thread.start()
    try:
        while True:
            with reader.changed:
                while not reader.changed.wait_for(reader.has_news, CHECK_SECONDS):
                    if not thread.is_alive():
                        raise MemoryError("the thread that reads ahead ended without a result")
                if not reader.ready:
                    break
                item, weight = reader.ready.popleft()
                reader.weight -= weight
                reader.changed.notify_all()
            yield item
        if reader.error is not None:
            raise reader.error
    finally:  # a thread that hangs in its source is abandoned
        with reader.changed:
            reader.is_closed = True
            reader.changed.notify_all()
        thread.join(CLOSE_SECONDS)


class _Reader(Generic[T]):
    """What both threads see, changed with ``changed`` held."""

    def __init__(self, items: Iterable[T], limit: int, weigh: Callable[[T], int]) -> None:
        self._items, self._limit, self._weigh = items, limit, weigh
        self.changed = threading.Condition()
        self.ready: deque[tuple[T, int]] = deque()
        self.weight = 0
        self.is_finished = self.is_closed = False
        self.error: BaseException | None = None

    def has_news(self) -> bool:
        return bool(self.ready) or self.is_finished

    def run(self) -> None:
        try:
            iterator: Any = iter(self._items)
            for item in iterator:
                if not self._put(item, self._weigh(item)):
                    break
            if hasattr(iterator, "close"):
                iterator.close()
        except BaseException as error:  # raised by the consumer
            self.error = error
        finally:
            with self.changed:
                self.is_finished = True
                self.changed.notify_all()

    def _put(self, item: T, weight: int) -> bool:
        """Wait for room and add an item; return whether more are wanted."""

        def has_room() -> bool:
            return self.is_closed or not self.ready or self.weight + weight <= self._limit

        with self.changed:
            self.changed.wait_for(has_room)
            self.ready.append((item, weight))
            self.weight += weight
            self.changed.notify_all()
            return not self.is_closed
