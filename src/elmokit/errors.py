"""The exceptions of elmokit.

For the command line all of them, like system errors about a path, mean wrong input (exit code 2). A
plain ``ValueError`` or ``TypeError`` from a command is a bug (exit code 1), so whatever a user can
cause by an option, a text or a setting raises `InputError` or is checked inside `as_input_error`.
"""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


class ElmokitError(Exception):
    """Base class of the errors below."""


class InputError(ElmokitError, ValueError):
    """An option or argument has an invalid value, or conflicts with others."""


class ConfigError(ElmokitError, ValueError):
    """A setting is unknown or has the wrong type or an invalid value; names key and file."""


class FormatError(ElmokitError, ValueError):
    """A file violates its format; names file, position, what is expected and the cure."""


class Stopped(KeyboardInterrupt):
    """A job was stopped by a signal and can be resumed.

    Args:
        message: What is saved, and how to resume.
        signal_number: The exit code of a command is 128 + this.
    """

    def __init__(self, message: str, *, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number


class MissingExtraError(ElmokitError, ImportError):
    """An optional library is missing; names the ``pip install`` command of the ``extra``."""

    def __init__(self, module: str, *, extra: str) -> None:
        super().__init__(
            f"This needs the package {module!r}, or another version of it than is installed. "
            f"Install it with: {_install_command(extra)}"
        )
        self.module = module
        self.extra = extra


@contextmanager
def needs_torch() -> Iterator[None]:
    """Name the extra `train` where PyTorch is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("torch", extra="train") from error


def _install_command(extra: str) -> str:
    """Return the command for an extra; in a clone with its tested versions."""
    clone = Path(__file__).resolve().parents[2]
    if not (clone / "constraints.txt").is_file():
        return f'pip install "elmokit[{extra}]"'
    return f'cd {shlex.quote(str(clone))} && pip install -c constraints.txt -e ".[{extra}]"'


@contextmanager
def as_input_error() -> Iterator[None]:
    """Turn ``ValueError`` and ``TypeError`` of argument checks into `InputError`.

    Keep the block small: a bug inside it would be reported as wrong input.
    """
    try:
        yield
    except ElmokitError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error


def refuse(problems: Mapping[str, bool]) -> None:
    """Raise `InputError` with the first message whose condition holds."""
    for message, is_present in problems.items():
        if is_present:
            raise InputError(message)
