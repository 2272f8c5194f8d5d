"""Standard streams that are closed (``2>&-``), or go away while a command runs."""

import os
import sys
from typing import Any, cast


def open_standard_streams() -> None:
    """Make all three streams usable; what is written to a closed one is dropped.

    Their descriptors are taken, too: otherwise the next file that is opened would get the number of
    standard error, and libraries would write their messages into it. Messages that can no longer be
    written, such as after the terminal was closed, do not end the command.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    streams = cast(Any, sys)  # a closed one is None
    streams.stdin = sys.stdin or _nowhere("r")
    streams.stdout = sys.stdout or _nowhere("w")
    streams.stderr = _Messages(sys.stderr or _nowhere("w"))


def _nowhere(mode: str) -> Any:
    return open(os.devnull, mode, encoding="utf-8")


class _Messages:
    """Standard error; a write that the system refuses is dropped."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            return

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
