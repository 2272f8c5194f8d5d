"""Ctrl-C, SIGTERM, a closed terminal (SIGHUP): noted, so that a job saves its state first."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from elmokit.errors import Stopped

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


@dataclass
class StopRequest:
    """A request to stop, made by a signal."""

    signal_number: int | None = None
    """The first signal that came; none so far: no request."""

    def stopped(self, where: str) -> Stopped:
        """Return the exception that ends the job, once its state is saved."""
        # In other processes of a training than the first, perhaps no signal has come.
        number = self.signal_number or signal.SIGTERM
        return Stopped(f"stopped by {signal.Signals(number).name} {where}.", signal_number=number)


@contextmanager
def stop_requests(wanted: bool, *, second_stops_at_once: bool = True) -> Iterator[StopRequest]:
    """Note `SIGNALS` and say so, instead of obeying them; only in the main thread.

    Unless it is ``wanted``, nothing is noted. Ignored signals stay ignored (as SIGHUP is under
    `nohup`), and those that a C library handles are left to it.
    ``second_stops_at_once`` obeys a second Ctrl-C; not for `torchrun`, which repeats the first.
    """
    request = StopRequest()

    def note(number: int, frame: FrameType | None) -> None:
        if request.signal_number is None:
            request.signal_number = number
            again = " (Ctrl-C again: stop at once, without one)" if second_stops_at_once else ""
            # in another thread: this one may be in the middle of a log line
            text = "stopping after this update, with a checkpoint%s"
            threading.Thread(target=log.info, args=(text, again), daemon=True).start()
        elif second_stops_at_once and number == signal.SIGINT:
            raise KeyboardInterrupt

    before = {
        number: signal.signal(number, note)
        for number in (SIGNALS if wanted else ())
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
