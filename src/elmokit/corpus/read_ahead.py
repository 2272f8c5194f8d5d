"""Items that a thread prepares ahead of whoever reads them."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
CLOSE_SECONDS = 1.0
"""Longest wait for the thread to end."""


def read_ahead(
    items: Iterable[T], *, limit: int, weigh: Callable[[T], int] = lambda item: 1
) -> Generator[T, None, None]:
    """Yield items that a thread prepares ahead, in order.

    Errors of the thread are raised after the items before them. The thread starts with the first
    request and ends when the iterator is exhausted or closed. ``limit`` is the largest total weight
    of waiting items; a single item may exceed it.
    """
    changed, ready = threading.Condition(), deque[T]()
    weight, is_closed, is_finished = 0, False, False
    error: BaseException | None = None

    def prepare() -> None:
        nonlocal weight, is_finished, error
        try:
            iterator: Any = iter(items)
            for item in iterator:
                with changed:
                    changed.wait_for(
                        lambda: is_closed or not ready or weight + weigh(item) <= limit  # noqa: B023
                    )
                    ready.append(item)
                    weight += weigh(item)
                    changed.notify_all()
                if is_closed:
                    break
            getattr(iterator, "close", lambda: None)()
        except BaseException as raised:  # raised again by the consumer
            error = raised
        with changed:
            is_finished = True
            changed.notify_all()

    thread = threading.Thread(target=prepare, daemon=True)
    thread.start()
    try:
        while True:
            with changed:
                changed.wait_for(lambda: ready or is_finished)
                if not ready:
                    break
                item = ready.popleft()
                weight -= weigh(item)
                changed.notify_all()
            yield item
        if error is not None:
            raise error
    finally:
        # a consumer that stops early must not leave the thread waiting for room; a thread that
        # hangs in its source is abandoned
        with changed:
            is_closed = True
            changed.notify_all()
        thread.join(CLOSE_SECONDS)
