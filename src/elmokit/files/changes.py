"""Differences between recorded settings and present ones."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """A value that differs from the recorded one."""

    key: str
    """Dotted, such as ``train.batch_size``."""
    was: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.key} was {self.was!r} and is now {self.now!r}"


def changes(recorded: Mapping[str, Any], present: Mapping[str, Any]) -> list[Change]:
    """Compare nested values as JSON stores them: tuples equal lists, an absent key equals None."""
    was, now = (flattened(json.loads(json.dumps(values))) for values in (recorded, present))
    return [
        Change(key, was.get(key), now.get(key))
        for key in {**was, **now}
        if was.get(key) != now.get(key)
    ]


def flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values by dotted names, such as ``train.batch_size``."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
