"""Samples of data sets, drawn by the units of a task (`Task.divide`).

The draw depends only on the file, not on a run's seed, so every run of a task has the same
examples; a smaller sample is part of a larger one.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from elmokit.errors import InputError
from elmokit.files.atomic import atomic_file
from elmokit.tasks.registry import find_task

SAMPLE_VERSION = 2
"""Increased when the same file would give a different sample."""
COMPRESSED = (".gz", ".xz", ".zst")


def sample_file(
    source: Path, directory: Path, *, task: str, limit: int | None, subset: str = "all"
) -> Path:
    """Write a sample of at most ``limit`` examples, but at least one unit, to ``directory``.

    The draw is from ``subset``, one of `Task.subsets`. Returns ``source`` if nothing is left out.

    Raises:
        InputError: for CSV, whose rows may contain line breaks.
        FormatError: if the file is damaged.
    """
    if limit is None and subset == "all":
        return source
    suffixes = [suffix for suffix in source.suffixes if suffix not in COMPRESSED]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".csv":
        raise InputError(f"{source}: no sample can be drawn of CSV. Give TSV or JSON lines.")
    data = find_task(task).divide(source, subset)
    text = data.join(_draw(data.units, limit, data.size))
    target = directory / f"{source.name.partition('.')[0]}{suffix}"
    with atomic_file(target) as temp_path:
        temp_path.write_text(text, encoding="utf-8")
    return target


def _draw(units: Sequence[Any], limit: int | None, size: Callable[[Any], int]) -> list[Any]:
    """Draw units at random until one exceeds the limit; return them in file order."""
    order = list(range(len(units)))
    random.Random(0).shuffle(order)
    taken, total = [], 0
    for index in order:
        total += size(units[index])
        if limit is not None and taken and total > limit:
            break
        taken.append(index)
    return [units[index] for index in sorted(taken)]
