"""Inputs of an experiment: a biLM, data sets and samples of them.

Samples are drawn by the units of a task (`Task.divide`). The draw depends only on the file, not on
a run's seed. The held-out part of a training set comes first in it: it is the same for every size
of the sample, and a smaller sample is part of a larger one.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmokit.config import to_dict
from elmokit.errors import InputError
from elmokit.experiments.definitions import (
    EXAMPLES,
    HELD_OUT_SHARE,
    MAX_HELD_OUT,
    Experiment,
    ProbeSettings,
    TaskSettings,
)
from elmokit.files.atomic import atomic_file
from elmokit.files.sources import COMPRESSIONS, file_sha256, plain_suffix
from elmokit.probes.inputs import SplitFiles, find_sense_inventory, find_splits
from elmokit.tasks.formats.conllu import predicates_of
from elmokit.tasks.formats.data_files import DataFile
from elmokit.tasks.registry import find_task
from elmokit.weights.locate import PACKAGED_MODELS, find_model
from elmokit.weights.model_dir import load_model

SAMPLE_VERSION = 5
"""Increased when the same file would give a different sample."""


class RunFiles(NamedTuple):
    """The files that all runs of a task read; the held-out part chooses the epoch."""

    train: Path
    held_out: Path
    dev: Path


def find_bilm(experiment: Experiment, model: str | None) -> tuple[Path, dict[str, Any]]:
    """Return the directory of a biLM, and what identifies it."""
    path = PACKAGED_MODELS / experiment.language if model is None else find_model(model)
    bilm = load_model(path)
    return path, {
        "model": bilm.model_hash(), "tokenizer": to_dict(bilm.tokenizer),
        "char_vocab": to_dict(bilm.char_vocab.config),
    }  # fmt: skip


def find_data(data_dir: Path, tasks: Sequence[TaskSettings]) -> dict[str, SplitFiles]:
    """Return the files of all data sets, by folder, after dividing each training set once."""
    files = {}
    for settings in tasks:
        suffixes = find_task(settings.task).suffixes
        files[settings.dataset] = find_splits(data_dir / settings.dataset, suffixes)
        _divide_training(files[settings.dataset].train, settings)
    return files


def task_facts(settings: TaskSettings, files: SplitFiles) -> dict[str, Any]:
    return {
        "train": file_sha256(files.train), "dev": file_sha256(files.dev),
        "max_train": settings.max_train, "held_out": [HELD_OUT_SHARE, MAX_HELD_OUT],
        "subset": settings.subset, "sample": SAMPLE_VERSION,
    }  # fmt: skip


def probe_facts(settings: ProbeSettings, data_dir: Path) -> dict[str, Any]:
    files = sorted((data_dir / settings.dataset).iterdir())
    hashes = {path.name: file_sha256(path) for path in files if path.is_file()}
    return {**hashes, "sample": SAMPLE_VERSION, "max_train": settings.max_train}


def read_probe_data(settings: ProbeSettings, data_dir: Path) -> Any:
    """Read what a probe needs, with a sample of at most ``max_train`` training examples."""
    folder, usual = data_dir / settings.dataset, settings.usual_test_set
    if EXAMPLES in settings.families:
        find_sense_inventory(folder)  # raises
    data = settings.probe.read(folder, usual if any(folder.glob(f"{usual}.*")) else None, "words")
    if settings.max_train is not None:
        train = DataFile(data.train, size=lambda sentence: 1)
        sample = sorted(_take(train, _draw_order(train), settings.max_train))
        data = data._replace(train=[data.train[index] for index in sample])
    return data


def write_run_files(source: SplitFiles, directory: Path, settings: TaskSettings) -> RunFiles:
    """Divide the training set of a task and take the subset of its dev set.

    The held-out part is a share of the file's examples, at most `MAX_HELD_OUT`, but at least one
    unit; the sample that is trained on is of the others. Both are written to ``directory``.
    """
    # held-out examples first: their draw does not depend on how many are trained on
    data, block = _divide_training(source.train, settings), find_task(settings.task).block
    most = min(MAX_HELD_OUT, round(HELD_OUT_SHARE * sum(map(data.size, data.units))))
    # blocks of the file, because neighbors are of one document and name the same things
    order = _draw_order(data, block=min(block, max(1, most)))
    last = max(at for at, index in enumerate(order) if data.size(data.units[index]))
    held_out = _take(data, order[:last], most)  # an example is left to train on
    others = order[len(held_out) :]
    if block > 1:  # all the blocks are trained on
        random.Random(0).shuffle(others)
    train = _take(data, others, settings.max_train)
    return RunFiles(
        train=_write(data, train, source.train, directory / "train"),
        held_out=_write(data, held_out, source.train, directory / "train/held-out"),
        dev=_write_subset(source.dev, directory / "dev", settings),
    )


def _write_subset(source: Path, directory: Path, settings: TaskSettings) -> Path:
    if settings.subset == "all":
        return source
    data = _divide(source, settings)
    return _write(data, range(len(data.units)), source, directory)


def _divide_training(source: Path, settings: TaskSettings) -> DataFile:
    if plain_suffix(source) == ".csv":  # rows of CSV may hold line breaks
        raise InputError(f"{source}: no sample can be drawn of CSV. Give TSV or JSON lines.")
    data = _divide(source, settings)
    num_units = sum(data.size(unit) > 0 for unit in data.units)
    if num_units < 2:
        raise InputError(
            f"{source} cannot be divided into examples to train on and to hold out: {num_units} of "
            f"its units ({settings.task}: sentences, paragraphs …) has an example; 2 are needed."
        )
    return data


def _divide(source: Path, settings: TaskSettings) -> DataFile:
    if settings.subset == "verbs":
        return predicates_of(source, only_verbs=True)
    return find_task(settings.task).divide(source)


def _draw_order(data: DataFile, *, block: int = 1) -> list[int]:
    starts = list(range(0, len(data.units), block))
    # not the seed of a run: what all runs of a task have in common is not drawn again
    random.Random(0).shuffle(starts)
    return [
        index for start in starts for index in range(start, min(start + block, len(data.units)))
    ]


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


def _write(data: DataFile, indices: Sequence[int], source: Path, directory: Path) -> Path:
    units: list[Any] = [data.units[index] for index in sorted(indices)]
    suffixes = [suffix for suffix in source.suffixes if suffix.lower() not in COMPRESSIONS]
    target = directory / f"{source.name.partition('.')[0]}{(suffixes or [''])[-1]}"
    with atomic_file(target) as temp_path:
        temp_path.write_text(data.join(units), encoding="utf-8")
    return target
