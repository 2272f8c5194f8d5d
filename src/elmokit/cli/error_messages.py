"""Error messages: what is wrong, what is safe on disk, how to continue."""

import errno
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from elmokit.errors import ElmokitError, Stopped
from elmokit.files.atomic import no_room

_REMEDIES: dict[type[OSError], str] = {
    FileNotFoundError: "Check the path; relative paths start at the current directory.",
    FileExistsError: "Give another name, or move the existing file away.",
    IsADirectoryError: "Give the path of a file.",
    NotADirectoryError: "A component of this path is a file, not a directory. Give another path.",
    PermissionError: "Change the permissions (ls -ld shows them), or give another path.",
}
_PATH_ERRORS = (errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP)
"""Other refusals of a path by the system."""
_NO_ROOM = {
    errno.EFBIG: "the largest file size that is allowed here (`ulimit -f` shows it)",
    errno.EDQUOT: "your disk quota is used up",
}


def is_user_error(error: BaseException) -> bool:
    """Return whether the input is at fault: a path the system refuses, or an elmokit error."""
    if isinstance(error, tuple(_REMEDIES)):
        return error.errno is None or error.filename is not None
    if isinstance(error, OSError) and error.errno in _PATH_ERRORS:
        return error.filename is not None
    return isinstance(error, ElmokitError) and no_room(error) is None


@contextmanager
def note_what_is_safe(saved: Callable[[], str]) -> Iterator[None]:
    """After Ctrl-C or on a full disk, add a note on what is already on disk."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) or no_room(error) is not None:
            error.add_note(saved())
        raise


@contextmanager
def exit_on_user_error() -> Iterator[None]:
    """In a script: print an error that its user can fix, and exit with code 2."""
    try:
        yield
    except Exception as error:
        if not is_user_error(error):
            raise
        print_error(error, program=Path(sys.argv[0]).name)
        raise SystemExit(2) from error


def print_error(error: BaseException, *, debug: bool = False, program: str = "elmokit") -> None:
    """Write the message and notes of `error` to stderr; with `debug`, also the traceback."""
    if debug:
        sys.stderr.write("".join(traceback.format_exception(error)))
    lines = [f"{program}: {_message(error)}", *getattr(error, "__notes__", [])]
    if not debug and not is_user_error(error) and not isinstance(error, KeyboardInterrupt):
        lines.append("(--debug shows the traceback)")
    sys.stderr.write("\n".join(lines) + "\n")


def _message(error: BaseException) -> str:
    """Return what is wrong, without Python's own formatting."""
    text = str(error)
    if isinstance(error, Stopped):
        return text
    if isinstance(error, KeyboardInterrupt):
        return "interrupted. No file is half-written."
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return "error: out of memory. Give a smaller batch or model; `ulimit -v` shows a limit."
    path = getattr(error, "filename", None)
    if (number := no_room(error)) is not None:
        reason = _NO_ROOM.get(number, "the disk is full")
        where = path or f"standard output, or a temporary file in {tempfile.gettempdir()}"
        again = "" if hasattr(error, "__notes__") else ", then run the command again"
        return f"error: {reason}: could not write {where}. Free space{again}."
    if isinstance(error, OSError) and error.strerror and path is not None:
        remedies = (text for kind, text in _REMEDIES.items() if isinstance(error, kind))
        return "\n".join([f"error: {error.strerror}: {path}", *remedies])
    if is_user_error(error) and text:
        return f"error: {text}"
    return f"error: {type(error).__name__}" + (f": {text}" if text else "")
