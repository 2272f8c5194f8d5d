"""Ctrl-C, SIGTERM, a closed terminal (SIGHUP): noted, so that a run writes a checkpoint first."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


@dataclass
class StopRequest:
    """A request to stop, made by a signal."""

    signal_number: int | None = None
    """The first signal that came; none so far: no request."""


@contextmanager
def held_signals(*, second_stops_at_once: bool) -> Iterator[StopRequest]:
    """Note `SIGNALS` instead of obeying them; only in the main thread.

    Ignored signals stay ignored (as SIGHUP is under `nohup`), and those that a C library handles
    are left to it.
    ``second_stops_at_once`` obeys a second Ctrl-C; not for `torchrun`, which repeats the first.
    """
    request = StopRequest()

    def note(number: int, frame: FrameType | None) -> None:
        if request.signal_number is None:
            request.signal_number = number
        elif second_stops_at_once and number == signal.SIGINT:
            raise KeyboardInterrupt

    before = {
        number: signal.signal(number, note)
        for number in SIGNALS
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
