"""Dataclass ⇄ TOML/JSON: strict keys, strict types, dotted overrides.

Settings are built with `from_dict`, files that elmokit wrote with `parse_record`. Types are checked
here and not by pydantic, whose import alone takes longer than loading a model; `__post_init__` of
the dataclass checks ranges. Nothing is converted, except a whole number to a float, a list to a
tuple, and ``"none"`` to None where the type has it, as TOML has no null. Whatever is wrong is a
`ConfigError` that names the key, its file, and each ``--set`` that changed it.
"""

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from operator import methodcaller
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from elmokit.errors import KIND_NAMES, ConfigError, FormatError, is_number, shown, union_members
from elmokit.files.lines import MAX_TOML_BYTES, read_bounded

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
    settings = apply_overrides(data, overrides) if overrides else data
    try:
        return _built(cls, settings, ())
    except _RefusedError as refused:
        path, problem = refused.args
        if problem == _UNKNOWN_KEY:
            problem += f". {_suggestion(cls, path)}"
        key = ".".join(map(str, path))
        origin = _origin(key, source, overrides)
        raise ConfigError(f"{origin}: `{key or 'the table'}`: {problem}.") from refused


_UNKNOWN_KEY = "unknown setting"
_LARGEST: Any = sys.float_info.max


class _RefusedError(Exception):
    """A setting that cannot be one: path, problem."""


def _built(hint: Any, value: Any, path: tuple[str | int, ...]) -> Any:
    """Return a value as its type wants it: ``X`` or ``X | None``, tables as dataclasses."""
    kinds = union_members(hint)
    kind: Any = kinds[0]
    origin, arguments = get_origin(kind), get_args(kind)
    is_choice = origin is Literal and isinstance(value, str) and value in arguments
    # TOML has no null
    if type(None) in kinds and (value is None or (value == "none" and not is_choice)):
        return None
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return value if isinstance(value, kind) else _built_table(kind, value, path)
    if kind is Any or is_choice:
        return value
    if origin is Literal:
        allowed = ", ".join(map(repr, arguments[:-1]))
        expected = f"{allowed} or {arguments[-1]!r}" if allowed else repr(arguments[0])
    elif origin in (tuple, list):
        if isinstance(value, list | tuple):
            is_fixed = origin is tuple and arguments[-1] is not Ellipsis
            if is_fixed and len(value) != len(arguments):
                raise _RefusedError(path, f"must have {len(arguments)} values, got {shown(value)}")
            types = arguments if is_fixed else [arguments[0]] * len(value)
            pairs = enumerate(zip(types, value, strict=True))
            return origin(_built(one, element, (*path, i)) for i, (one, element) in pairs)
        expected = "a list"
    elif origin is not None:  # a mapping
        if isinstance(value, Mapping):
            return {key: _built(arguments[1], one, (*path, key)) for key, one in value.items()}
        expected = "a table"
    elif kind is float and is_number(value) and -_LARGEST <= value <= _LARGEST:
        return float(value)
    elif kind is not float and type(value) is kind:
        return value
    else:
        expected = "a finite number" if kind is float else KIND_NAMES.get(kind, kind.__name__)
    raise _RefusedError(path, f"must be {expected}, got {shown(value)}")


def _built_table(cls: type, value: Any, path: tuple[str | int, ...]) -> Any:
    """Return the dataclass of a table of settings."""
    if not isinstance(value, Mapping):
        raise _RefusedError(path, f"must be a table of settings, got {shown(value)}")
    hints = get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
    # first: the key that an unknown one was meant to be may be missing
    for key in value:
        if key not in fields:
            raise _RefusedError((*path, key), _UNKNOWN_KEY)
    built = {key: _built(hints[key], one, (*path, key)) for key, one in value.items()}
    for name, field in fields.items():
        if name not in built and field.default is field.default_factory is dataclasses.MISSING:
            raise _RefusedError((*path, name), "this key is missing")
    try:
        return cls(**built)
    except ValueError as error:
        raise _RefusedError(path, str(error).removesuffix(".")) from error


def _suggestion(cls: type, path: Sequence[int | str]) -> str:
    """Say which name an unknown key was probably meant to be, and which ones its table has."""
    import difflib

    table: Any = cls
    for key in path[:-1]:
        hint = get_type_hints(table)[key] if isinstance(key, str) else get_args(table)[0]
        table = _dataclass_in(hint) or hint
    names = [field.name for field in dataclasses.fields(table)]
    near = difflib.get_close_matches(str(path[-1]), names, n=1, cutoff=_MIN_LIKENESS)
    hint = f"Did you mean `{near[0]}`? " if near else ""
    return f"{hint}Allowed here: {', '.join(sorted(names))}"


def _origin(path: str, source: str, overrides: Sequence[str]) -> str:
    """Return the source, and the overrides of the setting at a path, above it or below it."""
    related = [source]
    for override in overrides:
        key = override.partition("=")[0].replace(" ", "")
        if f"{path}.".startswith(f"{key}.") or key.startswith(f"{path}.") or not path:
            related.append(f"--set {override}")
    return " with ".join(related)


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
    of_numpy = methodcaller("item")
    return json.loads(json.dumps(dataclasses.asdict(config), default=of_numpy))


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read one TOML file."""
    missing = (
        f"There is no recipe {path}. A recipe is a TOML file of settings; single settings need "
        "no file: --set train.batch_size=64."
    )
    import tomllib

    data = read_bounded(path, MAX_TOML_BYTES, missing=missing)
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # also numbers of too many digits
        raise ConfigError(f"{path}: not a valid TOML file: {error}") from error


def apply_overrides(data: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return ``data`` with dotted ``key=value`` settings applied.

    Values are parsed as TOML; what is not valid TOML is a string. A table changes the values that
    it has and leaves the others as they are.
    """
    result = dict(data)
    for override in overrides:
        key, separator, text = override.partition("=")
        if not separator or not key.strip():
            raise ConfigError(
                f"--set takes key=value, such as train.batch_size=64, got {override!r}."
            )
        setting, parts = _parse_value(text.strip()), [part.strip() for part in key.split(".")]
        table: Any = result
        for part in parts[:-1]:
            table = table.get(part, {})
            if not isinstance(table, Mapping):
                raise ConfigError(
                    f"--set {override}: `{part}` is a value, not a table of settings."
                )
        for part in reversed(parts):
            setting = {part: setting}
        result = merged(result, setting)
    return result


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` updated with ``over``, table by table."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def _parse_value(text: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _dataclass_in(hint: Any) -> type | None:
    """Return the dataclass in ``X`` or ``X | None``."""
    types = (kind for kind in union_members(hint) if isinstance(kind, type))
    return next(filter(dataclasses.is_dataclass, types), None)
