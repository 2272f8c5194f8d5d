"""The files of a data set: which is for training, which for development."""

import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from elmokit.errors import InputError

_NAMES = {"train": ("training",), "dev": ("val", "valid", "validation")}
"""Other names of a split."""


def find_split(data: Path, split: str, suffixes: Sequence[str] = ()) -> Path:
    """Return the file of a data directory whose name says that it is this split.

    ``split``, or one of `_NAMES` in its place, must be a whole part of the name: ``train`` is in
    ``en-train.tsv``, not in ``constraints.tsv``. If there is none, folders in the directory are
    searched, but not hidden ones. Of several such files, the one with one of ``suffixes`` is taken.
    """
    if not data.is_dir():
        fault = f"{data} is not a directory." if data.exists() else f"There is no directory {data}."
        raise FileNotFoundError(
            f"{fault} Give the directory with the task's files (train… and dev…)."
        )
    tries = product(("[!.]*", "[!.]*/[!.]*"), (split, *_NAMES.get(split, ())))
    found = next(filter(None, (_named(data, pattern, name) for pattern, name in tries)), [])
    if len(found) > 1 and suffixes:
        found = [path for path in found if set(path.suffixes) & set(suffixes)] or found
    if len(found) > 1:
        names = ", ".join(str(path.relative_to(data)) for path in found)
        raise InputError(
            f"{data} has several files with {split!r} in their names: {names}. Leave one of them "
            "there."
        )
    if not found:
        raise FileNotFoundError(f"{data} has no file with {split!r} in its name.")
    return found[0]


def _named(data: Path, pattern: str, name: str) -> list[Path]:
    part = re.compile(rf"(?<![a-z]){name}(?![a-z])")
    return sorted(
        path for path in data.glob(pattern) if part.search(path.name.lower()) and path.is_file()
    )
