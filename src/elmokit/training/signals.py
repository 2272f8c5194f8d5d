"""Ctrl-C and SIGTERM while a run trains: held back until it can save what it has.

The default action of both would end the process in the middle of an update, and with it everything
since the last checkpoint.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class StopRequest:
    """Whether a signal has come."""

    signal_number: int | None = None
    """The first one that came."""

    @property
    def is_made(self) -> bool:
        """Whether the run is asked to stop."""
        return self.signal_number is not None


@contextmanager
def held_signals(*, second_stops_at_once: bool) -> Iterator[StopRequest]:
    """Note Ctrl-C and SIGTERM instead of obeying them.

    A signal that is ignored stays ignored, and one that a C library handles is left to it.
    Works in the main thread only, as all handling of signals in Python.

    Args:
        second_stops_at_once: Whether a second Ctrl-C is obeyed. (`torchrun` repeats the first to
            its processes.)
    """
    request = StopRequest()

    def note(number: int, frame: FrameType | None) -> None:
        if not request.is_made:
            request.signal_number = number
        elif second_stops_at_once and number == signal.SIGINT:
            raise KeyboardInterrupt

    heeded = [
        number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)
    ]
    before = {number: signal.signal(number, note) for number in heeded}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
