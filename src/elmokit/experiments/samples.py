"""Samples of data sets, drawn by the units of a task (`Task.divide`).

The draw depends only on the file, not on a run's seed, so every run of a task has the same
examples. The part of a training set that is held out comes first in the draw: it is the same for
every size of the sample, and a smaller sample is part of a larger one.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.errors import InputError
from elmokit.files.atomic import atomic_file
from elmokit.files.sources import COMPRESSIONS, plain_suffix
from elmokit.probes.data import SplitFiles
from elmokit.tasks.registry import find_task
from elmokit.tasks.sampling import DataFile

SAMPLE_VERSION = 4
"""Increased when the same file would give a different sample. Not on 2026-11-26, when units without
an example stopped counting: the data of the published runs give the same samples."""


@dataclass(frozen=True)
class TrainingParts:
    """The files that a training set is divided into."""

    train: Path
    held_out: Path


@dataclass(frozen=True)
class RunFiles:
    """The files that all runs of a task read."""

    parts: TrainingParts
    dev: Path


def write_run_files(
    source: SplitFiles,
    directory: Path,
    *,
    task: str,
    limit: int | None,
    subset: str,
    held_out: tuple[float, int],
) -> RunFiles:
    """Divide the training set and take the subset of the dev set; write to ``directory``.

    ``held_out`` is the share of the training set and the most examples, as for
    `divide_training_set`, which see for errors.
    """
    share, most = held_out
    parts = divide_training_set(
        source.train, directory / "train", task=task, subset=subset, limit=limit,
        held_out_share=share, max_held_out=most,
    )  # fmt: skip
    dev = sample_file(source.dev, directory / "dev", task=task, subset=subset, limit=None)
    return RunFiles(parts, dev)


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
    data = _divide(source, task, subset)
    return _write(data, _take(data, _draw_order(data), limit), source, directory)


def check_training_set(source: Path, *, task: str, subset: str = "all") -> None:
    """Check that `divide_training_set` can divide a file; raises its errors."""
    _divide_training(source, task, subset)


def divide_training_set(
    source: Path,
    directory: Path,
    *,
    task: str,
    limit: int | None,
    subset: str = "all",
    held_out_share: float,
    max_held_out: int,
) -> TrainingParts:
    """Write a sample of a training set, and a part that is held out of it, to ``directory``.

    The held-out part is a share of the file's examples, at most ``max_held_out``, but at least one
    unit; the sample is of the others, as in `sample_file`.

    Raises:
        InputError: for CSV, and for a file with fewer than two units that have an example.
        FormatError: if the file is damaged.
    """
    data = _divide_training(source, task, subset)
    order, num_examples = _draw_order(data), sum(map(data.size, data.units))
    most = min(max_held_out, round(held_out_share * num_examples))
    last = max(at for at, index in enumerate(order) if data.size(data.units[index]))
    held_out = _take(data, order[:last], most)  # an example is left to train on
    train = _take(data, order[len(held_out) :], limit)
    return TrainingParts(
        train=_write(data, train, source, directory),
        held_out=_write(data, held_out, source, directory / "held-out"),
    )


def _divide_training(source: Path, task: str, subset: str) -> DataFile:
    data = _divide(source, task, subset)
    num_units = sum(data.size(unit) > 0 for unit in data.units)
    if num_units < 2:
        raise InputError(
            f"{source} cannot be divided into examples to train on and examples that choose the "
            f"epoch: {num_units} of its units ({task}: sentences, paragraphs, documents or texts) "
            "has an example; 2 are needed."
        )
    return data


def _divide(source: Path, task: str, subset: str) -> DataFile:
    if plain_suffix(source) == ".csv":
        raise InputError(f"{source}: no sample can be drawn of CSV. Give TSV or JSON lines.")
    return find_task(task).divide(source, subset)


def _draw_order(data: DataFile) -> list[int]:
    order = list(range(len(data.units)))
    random.Random(0).shuffle(order)
    return order


def _take(data: DataFile, order: Sequence[int], limit: int | None) -> list[int]:
    """Return the first units in this order, up to the limit, but at least one example."""
    taken, total = [], 0
    for index in order:
        size = data.size(data.units[index])
        if limit is not None and total and total + size > limit:
            break
        taken.append(index)
        total += size
    return taken


def _write(data: DataFile, chosen: Sequence[int], source: Path, directory: Path) -> Path:
    """Write units in file order."""
    units: list[Any] = [data.units[index] for index in sorted(chosen)]
    suffixes = [suffix for suffix in source.suffixes if suffix.lower() not in COMPRESSIONS]
    suffix = suffixes[-1] if suffixes else ""
    target = directory / f"{source.name.partition('.')[0]}{suffix}"
    with atomic_file(target) as temp_path:
        temp_path.write_text(data.join(units), encoding="utf-8")
    return target
