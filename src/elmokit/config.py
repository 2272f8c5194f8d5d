"""Dataclass ⇄ TOML/JSON: strict keys, strict types, dotted overrides.

Everything that is read back from a file goes through a dataclass: settings through `from_dict`,
files that elmokit wrote through `parse_record`. An unknown or missing key, a value of another type
(nothing is converted, except a whole number to a float, and ``"none"`` to None where the type has
it), a number that is not finite and a value that ``__post_init__`` refuses are all errors with the
dotted path of the key and its file.
"""

import copy
import dataclasses
import difflib
import functools
import json
import numbers
import operator
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import GenericAlias
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from elmokit.errors import ConfigError, FormatError
from elmokit.field_checks import KIND_NAMES, union_members
from elmokit.files.bounded import MAX_TOML_BYTES, read_bounded
from elmokit.files.location import shown

T = TypeVar("T")
_LARGEST_INT = 2**63 - 1
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

    Args:
        cls: A dataclass; fields may be dataclasses, tuples, literals, optional values.
        data: Field values; absent keys take the field's default.
        source: File name of the data, for messages.
        overrides: Settings that replace those of ``data``, as in `apply_overrides`.

    Raises:
        ConfigError: for an unknown key (suggesting the nearest real one), a wrong type or a refused
            value; names the override that caused it instead of ``source``.
    """
    import pydantic

    settings = apply_overrides(data, overrides) if overrides else dict(data)
    context = _ErrorContext(source, tuple(overrides))
    settings = _with_none(cls, settings)
    _check_keys(cls, settings, path="", context=context)
    try:
        built = _adapter(cls).validate_python([settings])[0]
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where, value = first["loc"][1:], first.get("input")
        message = first["msg"].removeprefix("Value error, ").removesuffix(".")
        if first["type"] == "missing":
            message, value = "this key is missing", None
        elif isinstance(value, Mapping):  # a dataclass refused one of its values: find which
            key = _refused_key(cls, settings, where, context)
            where, value = (where, None) if key is None else ((*where, key), value[key])
        path = ".".join(map(str, where))
        is_named = ", got " in message or (isinstance(value, str) and repr(value) in message)
        got = "" if value is None or is_named else f", got {shown(value)}"
        raise ConfigError(
            f"{context.of(path)}: `{path or 'the table'}`: {message}{got}."
        ) from error
    for path, value, expected in _converted(settings, built):
        raise ConfigError(f"{context.of(path)}: `{path}`: must be {expected}, got {shown(value)}.")
    return built


def parse_record(cls: type[T], data: Mapping[str, Any], *, source: object, advice: str) -> T:
    """Build a dataclass from a file that elmokit wrote, or a part of it.

    Raises:
        FormatError: if it does not hold what ``cls`` says; ``advice`` ends the message.
    """
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
    """Read one TOML file.

    Raises:
        FileNotFoundError: if there is no such file.
        ConfigError: if it is not valid UTF-8 TOML, naming the line.
        FormatError: if it is larger than `MAX_TOML_BYTES`.
        OSError: if it cannot be read for another reason.
    """
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

    Raises:
        ConfigError: if an override has no ``=`` or a parent of its key is not a table.
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


@dataclasses.dataclass(frozen=True)
class _ErrorContext:
    """Where settings came from, to name the origin of a key in messages."""

    source: str
    overrides: tuple[str, ...]

    def override(self, path: str, *, or_below: bool = False) -> str | None:
        """Return the last override of a key or of one of its tables, or of a key below it."""
        for override in reversed(self.overrides):
            key = ".".join(part.strip() for part in override.partition("=")[0].split("."))
            if f"{path}.".startswith(f"{key}.") or (or_below and key.startswith(f"{path}.")):
                return override
        return None

    def of(self, path: str, *, or_below: bool = False) -> str:
        """Return the origin of a key, or of one below it."""
        override = self.override(path, or_below=or_below)
        return self.source if override is None else f"--set {override}"


def _refused_key(
    cls: type, settings: Mapping[str, Any], where: tuple[int | str, ...], context: _ErrorContext
) -> str | None:
    """Return the key of the table at ``where`` that must be removed to make the table valid."""
    import pydantic

    def is_refused_without(key: str) -> bool:
        trial = copy.deepcopy(dict(settings))
        del _at(trial, where)[key]
        try:
            _adapter(cls).validate_python([trial])
        except pydantic.ValidationError as error:
            return any(found["loc"][1 : len(where) + 1] == where for found in error.errors())
        return False

    overridden_first = sorted(
        _at(settings, where),
        key=lambda key: context.override(".".join(map(str, (*where, key)))) is None,
    )
    return next((key for key in overridden_first if not is_refused_without(key)), None)


def _at(settings: Any, where: tuple[int | str, ...]) -> Any:
    return functools.reduce(operator.getitem, where, settings)


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
    elif type(given) is int and abs(given) > _LARGEST_INT:
        yield path, given, f"at most {_LARGEST_INT:,}"


def _check_keys(cls: type, data: Any, *, path: str, context: _ErrorContext) -> None:
    """Raise for the first key, at any depth, that is no field of its dataclass."""
    if not isinstance(data, Mapping):
        raise ConfigError(
            f"{context.of(path)}: `{path or 'the top'}` must be a table of settings, got "
            f"{shown(data)}."
        )
    hints = get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]
    for key, value in data.items():
        where = f"{path}.{key}" if path else str(key)
        if key not in names:
            near = difflib.get_close_matches(str(key), names, n=1, cutoff=_MIN_LIKENESS)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise ConfigError(
                f"{context.of(where, or_below=True)}: unknown setting `{where}`.{hint} Allowed "
                f"here: {', '.join(sorted(names))}."
            )
        nested = _dataclass_in(hints[key])
        if nested is not None and value is not None:
            _check_keys(nested, value, path=where, context=context)


def _dataclass_in(hint: Any) -> type | None:
    """Return the dataclass in ``X`` or ``X | None``."""
    types = (kind for kind in union_members(hint) if isinstance(kind, type))
    return next(filter(dataclasses.is_dataclass, types), None)
