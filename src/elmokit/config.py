"""Dataclass ⇄ TOML/JSON: strict keys, checked types, dotted overrides.

Every part of elmokit owns a frozen, keyword-only dataclass beside its code. This module turns
nested dictionaries (from TOML or JSON) into such dataclasses and back. A key that no field has, a
value of the wrong type and a value that ``__post_init__`` refuses are all `ConfigError`, with the
dotted path of the key and the file it came from.
"""

import dataclasses
import difflib
import functools
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from elmokit.errors import ConfigError

T = TypeVar("T")


def from_dict(cls: type[T], data: Mapping[str, Any], *, source: str = "the configuration") -> T:
    """Build the dataclass ``cls`` from nested mappings.

    Args:
        cls: A dataclass; fields may be dataclasses, tuples, literals, optional values.
        data: Keys are field names. Absent keys take the field's default.
        source: Where the data came from (a file name), for messages.

    Raises:
        ConfigError: for an unknown key (the nearest real one is suggested), a wrong type or a
            refused value.
    """
    import pydantic

    _check_keys(cls, data, path="", source=source)
    try:
        return _adapter(cls).validate_python(dict(data))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the table"
        message = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{source}: `{key}`: {message}, got {first.get('input')!r}.") from error


def to_dict(config: Any) -> dict[str, Any]:
    """Return the dataclass as JSON-able nested dictionaries (tuples become lists)."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read one TOML file.

    Raises:
        FileNotFoundError: if there is no such file.
        ConfigError: if it is not valid UTF-8 TOML; the message has the line.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a valid TOML file: {error}") from error


def apply_overrides(data: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return ``data`` with dotted ``key=value`` settings put in.

    A value is read as TOML; what is not TOML is a string.

    Raises:
        ConfigError: if an override has no ``=`` or goes through a key that is not a table.
    """
    result = json.loads(json.dumps(data))
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
        table[last] = _parse_value(text.strip())
    return result


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return None if text == "none" else text


@functools.cache
def _adapter(cls: type) -> Any:
    import pydantic

    return pydantic.TypeAdapter(cls)


def _check_keys(cls: type, data: Any, *, path: str, source: str) -> None:
    """Raise for the first key, at any depth, that is not a field of its dataclass."""
    if not isinstance(data, Mapping):
        raise ConfigError(
            f"{source}: `{path or 'the top'}` must be a table of settings, got {data!r}."
        )
    hints = get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]
    for key, value in data.items():
        where = f"{path}.{key}" if path else str(key)
        if key not in names:
            near = difflib.get_close_matches(str(key), names, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise ConfigError(
                f"{source}: unknown setting `{where}`.{hint} Allowed here: "
                f"{', '.join(sorted(names))}."
            )
        nested = _dataclass_in(hints[key])
        if nested is not None and value is not None:
            _check_keys(nested, value, path=where, source=source)


def _dataclass_in(hint: Any) -> type | None:
    """Return the dataclass that ``hint`` is, or that ``X | None`` holds."""
    for candidate in (hint, *get_args(hint)):
        if isinstance(candidate, type) and dataclasses.is_dataclass(candidate):
            return candidate
    return None
