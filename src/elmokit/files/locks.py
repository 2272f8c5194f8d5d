"""Locks that keep two processes from writing to the same place."""

import errno
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

logger = logging.getLogger(__name__)

LOCK_NAME = ".elmokit-lock"
_NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}
"""Errors of file systems without locks, such as some network file systems."""


@contextmanager
def directory_lock(directory: Path, *, busy: str) -> Iterator[Path]:
    """Lock a directory, which must exist, until the end; yield the path of the lock file.

    The lock ends with the process, however it ends. The file may stay; who removes it must hold it.

    Raises:
        FileExistsError: if another process holds it; ``busy`` is the message.
    """
    lock = FileLock(directory / LOCK_NAME, fallback_to_soft=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise FileExistsError(busy) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        logger.warning(
            "%s cannot be locked (%s): do not start a second process in it", directory, error
        )
    try:
        yield directory / LOCK_NAME
    finally:
        lock.release()


@contextmanager
def held_directory(directory: Path, *, busy: str) -> Iterator[None]:
    """Make a directory and lock it as `directory_lock`; at the end it is removed if it is empty."""
    try:
        with ExitStack() as stack:
            while True:
                directory.mkdir(parents=True, exist_ok=True)
                try:
                    lock = stack.enter_context(directory_lock(directory, busy=busy))
                    break
                except FileNotFoundError:  # removed by its last holder meanwhile
                    continue
            try:
                yield
            finally:
                with suppress(OSError):  # where open files cannot be removed
                    lock.unlink()
    finally:  # without the lock: on NFS its file is there as long as it is open
        with suppress(OSError):  # not empty, or held by the next
            directory.rmdir()
