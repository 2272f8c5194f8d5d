"""Dataclass ⇄ TOML/JSON: strict keys, checked types, dotted overrides.

An unknown key, a value of the wrong type and a value that ``__post_init__`` refuses are all
`ConfigError`, with the dotted path of the key and its file.
"""

import copy
import dataclasses
import difflib
import functools
import json
import operator
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from elmokit.errors import ConfigError

T = TypeVar("T")

MAX_TOML_BYTES = 2**20
"""Of a recipe."""


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
    _check_keys(cls, settings, path="", context=context)
    try:
        return _adapter(cls).validate_python(settings)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where, value = first["loc"], first.get("input")
        message = first["msg"].removeprefix("Value error, ").removesuffix(".")
        if isinstance(value, Mapping):  # a dataclass refused one of its values: find which
            key = _refused_key(cls, settings, where, context)
            where, value = (where, None) if key is None else ((*where, key), value[key])
        path = ".".join(map(str, where))
        got = "" if value is None or ", got " in message else f", got {value!r}"
        raise ConfigError(
            f"{context.of(path)}: `{path or 'the table'}`: {message}{got}."
        ) from error


def to_dict(config: Any) -> dict[str, Any]:
    """Return the dataclass as nested dictionaries for JSON (tuples become lists)."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read one TOML file.

    Raises:
        FileNotFoundError: if there is no such file.
        ConfigError: if it is not valid UTF-8 TOML, naming the line; if it is too large.
    """
    if not Path(path).exists():
        raise FileNotFoundError(
            f"There is no recipe {path}. A recipe is a TOML file of settings; single settings need "
            "no file: --set train.batch_size=64."
        )
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_TOML_BYTES + 1)
        if len(data) > MAX_TOML_BYTES:
            raise ConfigError(f"{path}: larger than {MAX_TOML_BYTES:,} bytes: not a recipe.")
        return tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a valid TOML file: {error}") from error


def apply_overrides(data: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return ``data`` with dotted ``key=value`` settings applied.

    Values are parsed as TOML; what is not valid TOML is a string, ``none`` is None.

    Raises:
        ConfigError: if an override has no ``=`` or a parent of its key is not a table.
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
    """Where settings came from, to name the origin of a key in messages."""

    source: str
    overrides: tuple[str, ...]

    def override(self, path: str) -> str | None:
        """Return the last override of a key or of one of its tables."""
        for override in reversed(self.overrides):
            key = ".".join(part.strip() for part in override.partition("=")[0].split("."))
            if f"{path}.".startswith(f"{key}."):
                return override
        return None

    def of(self, path: str) -> str:
        """Return the origin of a key."""
        override = self.override(path)
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
    return functools.reduce(operator.getitem, where, settings)


@functools.cache
def _adapter(cls: type) -> Any:
    import pydantic

    return pydantic.TypeAdapter(cls)


def _check_keys(cls: type, data: Any, *, path: str, context: _ErrorContext) -> None:
    """Raise for the first key, at any depth, that is no field of its dataclass."""
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
    """Return the dataclass in ``X`` or ``X | None``."""
    types = (kind for kind in (hint, *get_args(hint)) if isinstance(kind, type))
    return next(filter(dataclasses.is_dataclass, types), None)
