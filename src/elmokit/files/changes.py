"""What a file or a run was made of, recorded with it, and what has changed since."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from elmokit.files.hashing import file_sha256
from elmokit.files.sources import Paths, find_files


@dataclass(frozen=True, slots=True)
class Change:
    """A recorded value that is another one now."""

    key: str
    """With dots, such as ``train.batch_size``."""
    was: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.key} was {self.was!r} and is now {self.now!r}"


def changes(recorded: Mapping[str, Any], present: Mapping[str, Any]) -> list[Change]:
    """Compare nested values as JSON keeps them: tuples equal lists, an absent key equals None."""
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


def describe_files(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Return path, size and SHA-256 of every file, to be kept with what is made of them.

    What can be read only once (standard input, a pipe) has a path alone.
    """
    return [
        {"path": str(path), "num_bytes": path.stat().st_size, "sha256": file_sha256(path)}
        if path.is_file()
        else {"path": str(path), "num_bytes": None, "sha256": None}
        for path in files
    ]


def changed_file(recorded: Sequence[Mapping[str, Any]], paths: Paths) -> str | None:
    """Return the first file that is not what `describe_files` recorded, or None.

    Args:
        recorded: What it returned.
        paths: As `find_files` got them. A file that was removed or added counts as changed; where
            none of the paths is left, nothing can have changed.
    """
    try:
        files = find_files(paths)
    except FileNotFoundError:
        return None
    for path, then in zip_longest(files, recorded):
        if path is None:
            return then["path"]
        if then is None:
            return str(path)
        if then.get("num_bytes") is None or not path.is_file():
            continue
        if path.stat().st_size != then["num_bytes"]:
            return str(path)
        if "sha256" in then and file_sha256(path) != then["sha256"]:
            return str(path)
    return None
