"""The exceptions of elmokit; checks of settings; positions, values and numbers in messages.

For the command line all of them, like system errors about a path, mean wrong input (exit code 2). A
plain ``ValueError`` or ``TypeError`` from a command is a bug (exit code 1), so whatever a user can
cause by an option, a text or a setting raises `InputError` or is checked inside `as_input_error`.
"""

import numbers
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints


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
def needs_extra(extra: str, *, module: str) -> Iterator[None]:
    """Name the extra that brings a package where it is missing, or too old."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(module, extra=extra) from error


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


_MAX_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """A file, a line of it, a part of a document."""

    path: object
    line: int | None = None
    """From 1; None for a whole document."""
    part: str = ""
    """Inside a JSON document, such as ``data[0].paragraphs[2]``."""

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        return f"{self.path}{line}{', ' if self.part else ''}{self.part}"

    def error(self, message: str) -> FormatError:
        """Return the error that names this location."""
        return FormatError(f"{self}: {message}")


def printable(path: object) -> str:
    """Return a path as text; bytes that are not UTF-8 are escaped."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def quoted(path: object) -> str:
    """Return a path as a word of a command to copy, for the shell of this system."""
    import subprocess

    text = str(path)
    return subprocess.list2cmdline([text]) if os.name == "nt" else shlex.quote(text)


def shown(value: object) -> str:
    """Return the repr of a value. A long one is shortened; its closing quote or bracket stays."""
    text = repr(value)
    is_long = len(text) > _MAX_SHOWN_CHARACTERS
    return f"{text[: _MAX_SHOWN_CHARACTERS - 4]}...{text[-1]}" if is_long else text


def counted(number: int, noun: str) -> str:
    """Return a number of things, such as "1 file" or "2,000 files"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


T = TypeVar("T")
KIND_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
"""How messages name what a setting must be."""


@dataclass(frozen=True)
class Bounds:
    """Lowest and highest value of a setting, in its type: ``Annotated[int, Bounds(1, 100)]``."""

    low: float
    high: float


SEEDS = (0, 2**32 - 1)
"""Range of random seeds: what NumPy, PyTorch and gensim all take."""
Seed = Annotated[int, Bounds(*SEEDS)]
Count = Annotated[int, Bounds(1, 1 << 40)]
Positive = Annotated[float, Bounds(1e-300, 1e300)]
Share = Annotated[float, Bounds(0.0, 1.0)]


class CheckedFields:
    """Base of dataclasses whose fields are checked when they are built, by `check_setting`."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self), include_extras=True)
        for name, value in vars(self).items():
            check_setting(value, hints[name], name=name)


def check_setting(value: object, hint: Any, *, name: str) -> None:
    """Raise `ConfigError` for a value that is none of a ``Literal``, or not within `Bounds`.

    None is allowed where the type has it. Other types are not checked.
    """
    own, *others = [kind for kind in union_members(hint) if kind is not type(None)]
    if value is None and type(None) in union_members(hint):
        return
    if get_origin(own) is Annotated and isinstance(get_args(own)[1], Bounds):
        kind, bounds = get_args(own)
        low, high = bounds.low, bounds.high
        if not is_number(value, whole=kind is int) or not low <= value <= high:
            raise ConfigError(
                f"`{name}` must be {KIND_NAMES[kind]} from {_number(low)} to {_number(high)}, got "
                f"{shown(value)}"
            )
    elif get_origin(own) is Literal and not others:
        try:
            check_choice(value, own, name=name)
        except InputError as error:
            raise ConfigError(str(error)) from None


def check_choice(value: T, choices: Any, *, name: str) -> T:
    """Return ``value``; raise `InputError` with the choices if it is none of a ``Literal``."""
    allowed = get_args(choices)
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"`{name}` must be one of {', '.join(allowed)}, got {shown(value)}.")
    return value


def find_named(table: Mapping[str, T], name: str, *, what: str) -> T:
    """Return the entry of a table; `InputError` with its names if there is none."""
    if name not in table:
        raise InputError(f"There is no {what} {name!r}; choose one of {', '.join(table)}.")
    return table[name]


def is_number(value: object, *, whole: bool = False) -> bool:
    """Return whether a value is a (whole) number, NumPy's included; True and False are none."""
    kind = numbers.Integral if whole else numbers.Real
    return isinstance(value, kind) and not isinstance(value, bool)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def union_members(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the only one."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
