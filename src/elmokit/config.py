"""Dataclass ⇄ TOML/JSON: strict keys, checked types, dotted overrides.

Every part of elmokit owns a frozen, keyword-only dataclass beside its code. This module turns
nested dictionaries (from TOML or JSON) into such dataclasses and back. A key that no field has, a
value of the wrong type and a value that ``__post_init__`` refuses are all `ConfigError`, with the
dotted path of the key and the file it came from.
"""

import copy
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
        data: Keys are field names. Absent keys take the field's default.
        source: Where the data came from (a file name), for messages.
        overrides: Settings over ``data``, as in `apply_overrides`.

    Raises:
        ConfigError: for an unknown key (the nearest real one is suggested), a wrong type or a
            refused value; an override that is to context is named instead of ``source``.
    """
    import pydantic

    settings = apply_overrides(data, overrides) if overrides else dict(data)
    context = _ErrorContext(source, tuple(overrides))
    _check_keys(cls, settings, path="", context=context)
    try:
        return _adapter(cls).validate_python(settings)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where, value = first["loc"], first.get("input")
        message = first["msg"].removeprefix("Value error, ").removesuffix(".")
        if isinstance(value, Mapping):  # a dataclass refused its values: which of them?
            key = _refused_key(cls, settings, where, context)
            where, value = (where, None) if key is None else ((*where, key), value[key])
        path = ".".join(map(str, where))
        is_said = value is None or ", got " in message
        got = "" if is_said else f", got {value!r}"
        raise ConfigError(
            f"{context.of(path)}: `{path or 'the table'}`: {message}{got}."
        ) from error


def to_dict(config: Any) -> dict[str, Any]:
    """Return the dataclass as JSON-able nested dictionaries (tuples become lists)."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read one TOML file.

    Raises:
        FileNotFoundError: if there is no such file.
        ConfigError: if it is not valid UTF-8 TOML; the message has the line.
    """
    if not Path(path).exists():
        raise FileNotFoundError(
            f"There is no recipe {path}. A recipe is a TOML file of settings; single settings go "
            "without one: --set train.batch_size=64."
        )
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


@dataclasses.dataclass(frozen=True)
class _ErrorContext:
    """Which of the places that settings came from a key came from."""

    source: str
    overrides: tuple[str, ...]

    def override(self, path: str) -> str | None:
        """Return the last override of a key, or of a table that it is in."""
        for override in reversed(self.overrides):
            key = ".".join(part.strip() for part in override.partition("=")[0].split("."))
            if f"{path}.".startswith(f"{key}."):
                return override
        return None

    def of(self, path: str) -> str:
        """Return what to name in a message about a key."""
        override = self.override(path)
        return self.source if override is None else f"--set {override}"


def _refused_key(
    cls: type, settings: Mapping[str, Any], where: tuple[int | str, ...], context: _ErrorContext
) -> str | None:
    """Return the key of the table at ``where`` without which the table would not be refused."""
    import pydantic

    def is_refused_without(key: str) -> bool:
        trial = copy.deepcopy(dict(settings))
        del _at(trial, where)[key]
        try:
            _adapter(cls).validate_python(trial)
        except pydantic.ValidationError as error:
            return any(found["loc"][: len(where)] == where for found in error.errors())
        return False

    overridden_first = sorted(
        _at(settings, where),
        key=lambda key: context.override(".".join(map(str, (*where, key)))) is None,
    )
    return next((key for key in overridden_first if not is_refused_without(key)), None)


def _at(settings: Any, where: tuple[int | str, ...]) -> Any:
    """Return what stands at a path of keys."""
    for part in where:
        settings = settings[part]
    return settings


@functools.cache
def _adapter(cls: type) -> Any:
    import pydantic

    return pydantic.TypeAdapter(cls)


def _check_keys(cls: type, data: Any, *, path: str, context: _ErrorContext) -> None:
    """Raise for the first key, at any depth, that is not a field of its dataclass."""
    if not isinstance(data, Mapping):
        raise ConfigError(
            f"{context.of(path)}: `{path or 'the top'}` must be a table of settings, got {data!r}."
        )
    hints = get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]
    for key, value in data.items():
        where = f"{path}.{key}" if path else str(key)
        if key not in names:
            near = difflib.get_close_matches(str(key), names, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise ConfigError(
                f"{context.of(where)}: unknown setting `{where}`.{hint} Allowed here: "
                f"{', '.join(sorted(names))}."
            )
        nested = _dataclass_in(hints[key])
        if nested is not None and value is not None:
            _check_keys(nested, value, path=where, context=context)


def _dataclass_in(hint: Any) -> type | None:
    """Return the dataclass that ``hint`` is, or that ``X | None`` holds."""
    for candidate in (hint, *get_args(hint)):
        if isinstance(candidate, type) and dataclasses.is_dataclass(candidate):
            return candidate
    return None
