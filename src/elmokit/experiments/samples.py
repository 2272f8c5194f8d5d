"""A smaller data set: some sentences, pairs, trees, questions or documents of a file.

The draw depends on the file alone, not on a run's seed, so that every run of a task has the same
examples; a smaller sample is part of a larger one. The task says what is drawn (`Task.divide`).
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from elmokit.errors import InputError
from elmokit.files.atomic import atomic_file
from elmokit.tasks.registry import find_task

SAMPLE_VERSION = 2
"""Changes whenever the same file would give another sample."""
COMPRESSED = (".gz", ".xz", ".zst")


def sample_file(
    source: Path, directory: Path, *, task: str, limit: int | None, subset: str = "all"
) -> Path:
    """Return a file with at most ``limit`` examples of a task's file, and at least one unit.

    Args:
        source: The file; it is returned itself where nothing has to be left out.
        directory: Where a smaller one is written, without compression.
        task: Divides the file.
        limit: Most examples; none: all.
        subset: One of the task's `Task.subsets`, which is kept before anything is drawn.

    Raises:
        InputError: for CSV, whose rows may hold line breaks.
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
    """Take units in random order until one would be too much; return them in their own order."""
    order = list(range(len(units)))
    random.Random(0).shuffle(order)
    taken, total = [], 0
    for index in order:
        total += size(units[index])
        if limit is not None and taken and total > limit:
            break
        taken.append(index)
    return [units[index] for index in sorted(taken)]
