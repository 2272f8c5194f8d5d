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
    was, now = _flat(json.loads(json.dumps(recorded))), _flat(json.loads(json.dumps(present)))
    return [
        Change(key, was.get(key), now.get(key))
        for key in {**was, **now}
        if was.get(key) != now.get(key)
    ]


def _flat(values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{path}{key}.")
        else:
            flat[f"{path}{key}"] = value
    return flat
