"""Standard streams that are closed (``2>&-``), full, or go away while a command runs."""

import os
import sys
from typing import Any, cast

BROKEN_PIPE = 141
"""Exit code after ``elmokit … | head``: 128 + SIGPIPE, as the shell reports it of others."""


def open_standard_streams() -> None:
    """Make all three streams usable, and refuse to start without standard output.

    Messages that can no longer be written, such as after the terminal was closed, do not end the
    command; results that cannot be written do, with exit code 1, or `BROKEN_PIPE` and no message if
    nobody reads on.
    """
    # closed descriptors are taken: otherwise the next file that is opened would get the number of
    # standard error, and libraries would write their messages into it
    is_closed = [_take_if_closed(descriptor) for descriptor in (0, 1, 2)]
    streams = cast(Any, sys)  # a closed one is None
    streams.stdin = sys.stdin or _nowhere("r")
    streams.stderr = _Stream(sys.stderr or _nowhere("w"))
    if is_closed[1] or sys.stdout is None:
        streams.stdout = _nowhere("w")
        sys.stderr.write(
            "elmokit: error: standard output is closed, so results would be lost. Give a file or a "
            "pipe, or /dev/null to drop them.\n"
        )
        raise SystemExit(2)
    streams.stdout = _Results(sys.stdout)


def _take_if_closed(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
        return True
    return False


def _nowhere(mode: str) -> Any:
    return open(os.devnull, mode, encoding="utf-8")


class _Stream:
    """A stream of messages; a write that the system refuses is dropped."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def fail(self, error: OSError) -> None:
        """Do what a write that the system refuses leads to."""

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self.fail(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self.fail(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Results(_Stream):
    """Standard output; a write that the system refuses ends the command."""

    def fail(self, error: OSError) -> None:
        # what is buffered goes nowhere, or the interpreter would try, and complain, once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
        if isinstance(error, BrokenPipeError):
            raise SystemExit(BROKEN_PIPE) from None
        sys.stderr.write(f"elmokit: error: standard output is cut: {error.strerror}.\n")
        raise SystemExit(1) from None
