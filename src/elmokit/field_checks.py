"""Checks of the fields of a dataclass, for its ``__post_init__``: ranges, choices, numbers."""

import functools
import numbers
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from elmokit.errors import ConfigError, InputError
from elmokit.wording import shown

T = TypeVar("T")
KIND_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
"""How messages name what a setting must be."""
SEEDS = (0, 2**32 - 1)
"""Range of random seeds: what NumPy, PyTorch and gensim all take."""


def check_ranges(config: object, **allowed: tuple[float, float]) -> None:
    """Check fields of a dataclass against (lowest, highest) values.

    Two ints mean that the field holds whole numbers. None is allowed where the field's type has it.
    """
    for name, (low, high) in allowed.items():
        value = getattr(config, name)
        kind = int if isinstance(low, int) and isinstance(high, int) else float
        is_valid = (
            type(None) in get_args(get_type_hints(type(config))[name])
            if value is None
            else is_number(value, whole=kind is int) and low <= value <= high
        )
        if not is_valid:
            raise ConfigError(
                f"`{name}` must be {KIND_NAMES[kind]} from {_number(low)} to {_number(high)}, got "
                f"{shown(value)}"
            )


def check_choice(value: T, choices: Any, *, name: str) -> T:
    """Return ``value``; raise `InputError` with the choices if it is none of a ``Literal``."""
    allowed = get_args(choices)
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"`{name}` must be one of {', '.join(allowed)}, got {shown(value)}.")
    return value


def check_choices(config: object) -> None:
    """Check all fields of a dataclass that hold one of some names (``Literal``)."""
    for name, (choices, may_be_none) in _choices_of(type(config)).items():
        value = getattr(config, name)
        if not (value is None and may_be_none):
            try:
                check_choice(value, choices, name=name)
            except InputError as error:
                raise ConfigError(str(error)) from None


@functools.cache
def _choices_of(cls: type) -> dict[str, tuple[Any, bool]]:
    """Return the ``Literal`` of each field that has one, and whether None is allowed, too."""
    found = {}
    for name, hint in get_type_hints(cls).items():
        kinds = union_members(hint)
        literals = [kind for kind in kinds if get_origin(kind) is Literal]
        if len(literals) == 1 and set(kinds) <= {literals[0], type(None)}:
            found[name] = literals[0], type(None) in kinds
    return found


def is_number(value: object, *, whole: bool = False) -> bool:
    """Return whether a value is a (whole) number, NumPy's included; True and False are none."""
    kind = numbers.Integral if whole else numbers.Real
    return isinstance(value, kind) and not isinstance(value, bool)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def union_members(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the only one."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
