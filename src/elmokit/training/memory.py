"""Memory that a training step gives back and the next one takes again.

The C library of Linux returns large blocks to the system when they are freed, and the system clears
each page anew when they are asked for again: a third of a step's time on two cores.
"""

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # numbers of <malloc.h>
_DEFAULTS = {_TRIM_THRESHOLD: 128 * 1024, _MMAP_MAX: 65536}
_KEEP = {_TRIM_THRESHOLD: 2**31 - 1, _MMAP_MAX: 0}


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep freed memory in the process, for the next step; at the end give it back.

    Has no effect but with the GNU C library, nor where the environment sets that library's memory
    (``MALLOC_...``, ``GLIBC_TUNABLES``). What lasts afterwards: the library no longer adapts by
    itself the size from which on a block comes straight from the system; it stays at 128 KiB.
    """
    if platform.libc_ver()[0] != "glibc" or _is_set_by_user():
        yield
        return
    libc = ctypes.CDLL(None)
    _set(libc, _KEEP)
    try:
        yield
    finally:
        _set(libc, _DEFAULTS)
        libc.malloc_trim(0)


def _is_set_by_user() -> bool:
    return any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)


def _set(libc: ctypes.CDLL, settings: dict[int, int]) -> None:
    for name, value in settings.items():
        libc.mallopt(name, value)
