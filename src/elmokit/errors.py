"""The few exceptions that elmokit raises on its own account.

All of them mean "the input is wrong" to the command line (exit code 2), and so does a system error
about a path. A plain ``ValueError`` or ``TypeError`` is what a wrong argument gets from Python; one
that comes out of a command is a bug (exit code 1). So what a user can cause by an option, a text or
a setting raises `InputError`, or is checked inside `as_input_error`.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class ElmokitError(Exception):
    """Base of the errors below, so that callers can catch them together."""


class InputError(ElmokitError, ValueError):
    """An option or argument has a value that is not allowed, or does not go with the others."""


class ConfigError(ElmokitError, ValueError):
    """A setting is unknown, has the wrong type or an impossible value; names key and file."""


class FormatError(ElmokitError, ValueError):
    """A file is not what its format promises; names file, position, what is expected, the cure."""


class Stopped(KeyboardInterrupt):
    """A signal asked a job to stop, and it did so at a point from which it can go on.

    Args:
        message: What is safe, and how to go on.
        signal_number: Of the signal; the exit code of a command is 128 more.
    """

    def __init__(self, message: str, *, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number


class MissingExtraError(ElmokitError, ImportError):
    """An optional library is needed and absent; names the ``pip install`` that brings it.

    Args:
        module: The module that could not be imported.
        extra: The extra of elmokit that brings it.
    """

    def __init__(self, module: str, *, extra: str) -> None:
        super().__init__(
            f"This needs the package {module!r}, which is not installed. "
            f'Install it with: pip install "elmokit[{extra}]"'
        )
        self.module = module
        self.extra = extra


@contextmanager
def as_input_error() -> Iterator[None]:
    """Turn what checks of arguments raise into `InputError`, where a user's input reaches them.

    Keep the block small: a bug inside it would be reported as wrong input.
    """
    try:
        yield
    except ElmokitError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error
