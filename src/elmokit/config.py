"""Dataclass ⇄ TOML/JSON: strict keys, strict types, dotted overrides.

Settings are built with `from_dict`, files that elmokit wrote with `parse_record`. Pydantic checks
them; `__post_init__` of the dataclass checks ranges. Nothing is converted, except a whole number to
a float, and ``"none"`` to None where the type has it, as TOML has no null. Whatever is wrong is a
`ConfigError` that names the key and its file, or the ``--set`` that brought it.
"""

import copy
import dataclasses
import difflib
import functools
import json
import numbers
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import GenericAlias
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from elmokit.errors import ConfigError, FormatError
from elmokit.field_checks import KIND_NAMES, union_members
from elmokit.files.bounded import MAX_TOML_BYTES, read_bounded
from elmokit.wording import shown

T = TypeVar("T")
_MIN_LIKENESS = 0.7
"""Of a key and the name that is suggested instead; less is another word, not a typing error."""


def from_dict(
    cls: type[T],
    data: Mapping[str, Any],
    *,
    source: str = "the configuration",
    overrides: Sequence[str] = (),
) -> T:
    """Build the dataclass ``cls`` from nested mappings.

    Absent keys take the field's default. ``source`` names the data in messages; ``overrides``
    replace settings of ``data``, as in `apply_overrides`.
    """
    import pydantic

    settings = _with_none(cls, apply_overrides(data, overrides) if overrides else data)
    try:
        built = _adapter(cls).validate_python([settings])[0]
    except pydantic.ValidationError as error:
        problems = [(one["type"], one["loc"][1:], one) for one in error.errors()]
        # an unknown key first: the key that it was meant to be may be missing
        kind, path, first = min(problems, key=lambda problem: problem[0] != _UNKNOWN_KEY)
        message, value = (
            first["msg"].removeprefix("Value error, ").removesuffix("."),
            first["input"],
        )
        if kind == "missing":
            message, value = "this key is missing", None
        elif kind == "dataclass_type":
            message = "must be a table of settings"
        elif isinstance(value, Mapping):  # refused by the dataclass, which may name a field
            named = re.match(r"`(\w+)`", message)
            field = named[1] if named and named[1] in value else None
            path, value = (path, None) if field is None else ((*path, field), value[field])
        key = ".".join(map(str, path))
        is_shown = ", got " in message or (isinstance(value, str) and repr(value) in message)
        got = "" if value is None or is_shown else f", got {shown(value)}"
        problem = f"`{key or 'the table'}`: {message}{got}"
        if kind == _UNKNOWN_KEY:
            problem = f"unknown setting `{key}`. {_suggestion(cls, path)}"
        raise ConfigError(f"{_origin(key, source, overrides)}: {problem}.") from error
    for key, value, expected in _converted(settings, built):
        raise ConfigError(
            f"{_origin(key, source, overrides)}: `{key}`: must be {expected}, got {shown(value)}."
        )
    return built


_UNKNOWN_KEY = "unexpected_keyword_argument"
"""Pydantic's name of the error."""


def _suggestion(cls: type, path: Sequence[int | str]) -> str:
    """Say which name an unknown key was probably meant to be, and which ones its table has."""
    table: Any = cls
    for key in path[:-1]:
        hint = get_type_hints(table)[key] if isinstance(key, str) else get_args(table)[0]
        table = _dataclass_in(hint) or hint
    names = [field.name for field in dataclasses.fields(table)]
    near = difflib.get_close_matches(str(path[-1]), names, n=1, cutoff=_MIN_LIKENESS)
    hint = f"Did you mean `{near[0]}`? " if near else ""
    return f"{hint}Allowed here: {', '.join(sorted(names))}"


def _origin(path: str, source: str, overrides: Sequence[str]) -> str:
    """Return where the setting at a path comes from: the last override of it, or the source.

    A table comes from the source and from all overrides below it.
    """
    below = []
    for override in reversed(overrides):
        key = ".".join(part.strip() for part in override.partition("=")[0].split("."))
        if f"{path}.".startswith(f"{key}."):
            return f"--set {override}"
        if not path or key.startswith(f"{path}."):
            below.append(f"--set {override}")
    return " with ".join([source, *reversed(below)])


def parse_record(cls: type[T], data: Mapping[str, Any], *, source: object, advice: str) -> T:
    """Build a dataclass from a file that elmokit wrote; ``advice`` ends the message of errors."""
    try:
        return from_dict(cls, data, source=str(source))
    except ConfigError as error:
        raise FormatError(f"{error} {advice}") from error


def known_part(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``data`` without keys that are no fields, for files of other programs."""
    hints, known = get_type_hints(cls), {}
    for name in (field.name for field in dataclasses.fields(cls) if field.name in data):
        nested, value = _dataclass_in(hints[name]), data[name]
        if nested is not None and isinstance(value, Mapping):
            value = known_part(nested, value)
        known[name] = value
    return known


def to_dict(config: Any) -> dict[str, Any]:
    """Return the dataclass as nested dictionaries for JSON: lists and plain numbers."""
    return json.loads(json.dumps(dataclasses.asdict(config), default=_plain_number))


def _plain_number(value: object) -> float:
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise TypeError(f"A setting of type {type(value).__name__} cannot be written as JSON.")


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read one TOML file."""
    missing = (
        f"There is no recipe {path}. A recipe is a TOML file of settings; single settings need "
        "no file: --set train.batch_size=64."
    )
    data = read_bounded(path, MAX_TOML_BYTES, missing=missing)
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # also numbers of too many digits
        raise ConfigError(f"{path}: not a valid TOML file: {error}") from error


def apply_overrides(data: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return ``data`` with dotted ``key=value`` settings applied.

    Values are parsed as TOML; what is not valid TOML is a string. A table changes the values that
    it has and leaves the others as they are.
    """
    result = copy.deepcopy(dict(data))
    for override in overrides:
        key, separator, text = override.partition("=")
        if not separator or not key.strip():
            raise ConfigError(
                f"--set takes key=value, such as train.batch_size=64, got {override!r}."
            )
        table = result
        *parents, last = [part.strip() for part in key.split(".")]
        for parent in parents:
            table = table.setdefault(parent, {})
            if not isinstance(table, dict):
                raise ConfigError(
                    f"--set {override}: `{parent}` is a value, not a table of settings."
                )
        table.update(merged(table, {last: _parse_value(text.strip())}))
    return result


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` updated with ``over``, table by table."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _with_none(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with None for ``"none"``, which TOML lacks, where the type has it."""
    hints, result = get_type_hints(cls), dict(data)
    for key in data.keys() & hints.keys():
        value, nested, kinds = data[key], _dataclass_in(hints[key]), get_args(hints[key])
        if nested is not None and isinstance(value, Mapping):
            result[key] = _with_none(nested, value)
        elif isinstance(value, str) and value == "none" and type(None) in kinds:
            literals = (get_args(kind) for kind in kinds if get_origin(kind) is Literal)
            choices = [choice for literal in literals for choice in literal]
            result[key] = value if value in choices else None
    return result


@functools.cache
def _adapter(cls: type) -> Any:
    import pydantic

    # of a list, because a dataclass alone takes no settings
    config = pydantic.ConfigDict(extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)
    a_list: Any = GenericAlias(list, cls)
    return pydantic.TypeAdapter(a_list, config=config)


def _converted(given: Any, built: Any, path: str = "") -> Iterator[tuple[str, Any, str]]:
    """Yield path, value and expected type of all values that validation has converted."""
    if isinstance(given, Mapping):
        values = built if isinstance(built, Mapping) else vars(built)
        for key, value in given.items():
            yield from _converted(value, values[key], f"{path}.{key}" if path else str(key))
    elif isinstance(given, list | tuple):
        for index, (value, element) in enumerate(zip(given, built, strict=True)):
            yield from _converted(value, element, f"{path}.{index}")
    elif type(given) is not type(built) and (type(given), type(built)) != (int, float):
        yield path, given, KIND_NAMES.get(type(built), type(built).__name__)


def _dataclass_in(hint: Any) -> type | None:
    """Return the dataclass in ``X`` or ``X | None``."""
    types = (kind for kind in union_members(hint) if isinstance(kind, type))
    return next(filter(dataclasses.is_dataclass, types), None)
