"""Inputs of an experiment: data sets and samples of them, test files, a biLM.

Samples are drawn by the units of a task (`Task.divide`). The draw depends only on the file, not on
a run's seed, so every run of a task has the same examples. The part of a training set that is held
out comes first in the draw: it is the same for every size of the sample, and a smaller sample is
part of a larger one.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from elmokit.config import to_dict
from elmokit.errors import FormatError, InputError
from elmokit.experiments.definitions import (
    EXAMPLES,
    HELD_OUT_SHARE,
    MAX_HELD_OUT,
    Experiment,
    ProbeSettings,
    TaskSettings,
)
from elmokit.experiments.plan import MODEL_KEY, SAMPLE_VERSION
from elmokit.files.atomic import atomic_file
from elmokit.files.hashing import file_sha256
from elmokit.files.sources import COMPRESSIONS, plain_suffix
from elmokit.probes.data import SplitFiles, find_sense_inventory, find_splits
from elmokit.tasks.formats.splits import find_split
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.task_bilm import TaskBiLM
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.examples import check_labels
from elmokit.tasks.sampling import DataFile
from elmokit.version import __version__
from elmokit.weights.locate import PACKAGED_MODELS, find_model, packaged_models
from elmokit.weights.model_dir import load_model

Files = TypeVar("Files")


@dataclass(frozen=True)
class BiLMMetadata:
    """A biLM and what identifies it."""

    path: Path
    hash: str
    """Hash of its weights."""
    metadata: dict[str, Any]
    """Part of a run's id; JSON-serializable."""


@dataclass(frozen=True)
class HashedFile:
    """A test file and what identifies its scores."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class RunFiles:
    """The files that all runs of a task read."""

    train: Path
    held_out: Path
    """Part of the training set that chooses the epoch."""
    dev: Path


def find_bilm(experiment: Experiment, model: str | None) -> BiLMMetadata:
    """Load the biLM of `model_path` once and identify it."""
    path = model_path(experiment, model)
    bilm = load_model(path)
    metadata = {
        MODEL_KEY: bilm.model_hash(), "tokenizer": to_dict(bilm.tokenizer),
        "char_vocab": to_dict(bilm.char_vocab.config),
    }  # fmt: skip
    return BiLMMetadata(path, metadata[MODEL_KEY], metadata)


def model_path(experiment: Experiment, model: str | None) -> Path:
    """Return the directory of the biLM that an experiment reads.

    Without ``model``, it is the packaged one of the experiment's language.
    """
    if model is not None or experiment.language == "en":
        return find_model(model)
    if experiment.language not in packaged_models():
        raise InputError(
            f"{experiment.name} needs a biLM of the language {experiment.language!r}, and the "
            "package has none. Give one with --model, and vectors of its text with --vectors."
        )
    return PACKAGED_MODELS / experiment.language


def find_vectors(experiment: Experiment, vectors: Path | None) -> Path:
    """Check that there is a file of static vectors."""
    if vectors is None:
        raise InputError(
            f"{experiment.name} needs static word vectors. Give a file with --vectors, ideally "
            "trained on the text of the biLM with `elmokit vectors`."
        )
    if not vectors.is_file():
        raise FileNotFoundError(f"There is no file of word vectors {vectors}.")
    return vectors


def find_data(data_dir: Path, tasks: Sequence[TaskSettings]) -> dict[str, SplitFiles]:
    """Return the files of all data sets, by folder, after dividing each training set once."""
    files = _find_all(data_dir, tasks, find_splits, "one train… and one dev… file", "--data")
    for settings in tasks:
        _divide_training(files[settings.dataset].train, settings)
    return files


def find_test_files(
    test_dir: Path, tasks: Sequence[TaskSettings], data: Mapping[str, SplitFiles], model: Path
) -> dict[str, HashedFile]:
    """Return the test files of all data sets, by folder, after reading each of them once.

    A folder has one file with ``test`` in its name, or a single file of any name.
    """
    paths = _find_all(test_dir, tasks, _find_test_file, "one test… file", "--test")
    tokenizer = TaskBiLM.open(InputSettings(embeddings="static"), str(model)).tokenizer
    files = {}
    for settings in tasks:
        path, training = paths[settings.dataset], data[settings.dataset].train
        files[settings.dataset] = HashedFile(path, file_sha256(path))
        task = find_task(settings.task).in_units(settings.units)
        try:
            if files[settings.dataset].sha256 == file_sha256(training):
                raise InputError(f"{path} has the same content as the training file {training}.")
            examples = task.read(path, training=False, tokenize=tokenizer.tokenize)
            if not examples:
                raise InputError(f"{path} has no example.")
            if task.labels_are_answers and task.labels(examples):
                known = task.read(training, training=True, tokenize=tokenizer.tokenize)
                check_labels(path, task, task.labels(known), examples)
        except (FormatError, InputError) as error:
            raise InputError(
                f"--test: not a test file of the task {settings.task} (expected: "
                f"{settings.content}): {error}"
            ) from error
    return files


def _find_test_file(folder: Path, suffixes: Sequence[str]) -> Path:
    files = [path for path in folder.iterdir() if path.is_file() and path.name[0] != "."]
    return files[0] if len(files) == 1 else find_split(folder, "test", suffixes)


def _find_all(
    directory: Path,
    tasks: Sequence[TaskSettings],
    find: Callable[[Path, Sequence[str]], Files],
    expected: str,
    option: str,
) -> dict[str, Files]:
    """Return what ``find`` finds in the folder of each data set, or say what belongs there."""
    files, missing = {}, []
    for settings in tasks:
        folder = directory / settings.dataset
        if not folder.is_dir():
            missing.append(f"  {folder}: {settings.content}; {expected}")
            continue
        try:
            files[settings.dataset] = find(folder, find_task(settings.task).suffixes)
        except (FileNotFoundError, InputError) as error:
            missing.append(f"  {_without_advice(error)}")
    if missing:
        raise FileNotFoundError(
            "Data sets are missing or incomplete:\n"
            + "\n".join(missing)
            + f"\nGive the folder of all data sets with {option}, or fewer tasks with --tasks."
        )
    return files


def _without_advice(error: Exception) -> str:
    """Return an error's message without its advice, which is about other commands."""
    return re.split(r"(?<=\.) (?:Name|Choose) ", str(error))[0]


def task_metadata(
    settings: TaskSettings, files: SplitFiles, model: BiLMMetadata, vectors_hash: str
) -> dict[str, Any]:
    """Return what determines the result of a task besides its configuration."""
    return {
        "elmokit_version": __version__,
        **model.metadata,
        "vectors": vectors_hash,
        "data": {
            "train": file_sha256(files.train), "dev": file_sha256(files.dev),
            "max_train": settings.max_train, "held_out": [HELD_OUT_SHARE, MAX_HELD_OUT],
            "subset": settings.subset, "sample": SAMPLE_VERSION,
        },
    }  # fmt: skip


def find_probe_data(settings: ProbeSettings, data_dir: Path) -> Any:
    """Return the files of a probe's data set; an error says what belongs there."""
    folder = data_dir / settings.dataset
    if not folder.is_dir():
        raise FileNotFoundError(
            f"A data set is missing:\n  {folder}: {settings.content}\n"
            "Give the folder of all data sets with --data."
        )
    usual = settings.usual_test_set
    has_usual = usual and any(path.name.startswith(f"{usual}.") for path in folder.iterdir())
    try:
        if EXAMPLES in settings.families:
            find_sense_inventory(folder)
        return settings.probe.find(folder, usual if has_usual else None)
    except (FileNotFoundError, InputError) as error:
        message = f"{_without_advice(error)} What belongs there: {settings.content}."
        raise type(error)(message) from error


def read_probe_data(settings: ProbeSettings, data_dir: Path, samples_dir: Path) -> Any:
    """Read a probe's data set; a sample of its training set is written to ``samples_dir``."""
    files = find_probe_data(settings, data_dir)
    if settings.max_train is not None:
        train = sample_file(files.train, samples_dir, task="pos", limit=settings.max_train)
        files = replace(files, train=train)
    return settings.probe.read(files, str.split, "words")


def write_run_files(source: SplitFiles, directory: Path, settings: TaskSettings) -> RunFiles:
    """Divide the training set of a task and take the subset of its dev set.

    The held-out part is a share of the file's examples, at most `MAX_HELD_OUT`, but at least one
    unit; the sample that is trained on is of the others. Both are written to ``directory``.
    """
    data = _divide_training(source.train, settings)
    order, num_examples = _draw_order(data), sum(map(data.size, data.units))
    most = min(MAX_HELD_OUT, round(HELD_OUT_SHARE * num_examples))
    last = max(at for at, index in enumerate(order) if data.size(data.units[index]))
    held_out = _take(data, order[:last], most)  # an example is left to train on
    train = _take(data, order[len(held_out) :], settings.max_train)
    return RunFiles(
        train=_write(data, train, source.train, directory / "train"),
        held_out=_write(data, held_out, source.train, directory / "train/held-out"),
        dev=sample_file(
            source.dev, directory / "dev", task=settings.task, subset=settings.subset, limit=None
        ),
    )


def sample_file(
    source: Path, directory: Path, *, task: str, limit: int | None, subset: str = "all"
) -> Path:
    """Write a sample of at most ``limit`` examples, but at least one unit, to ``directory``.

    The draw is from ``subset``, one of `Task.subsets`. Returns ``source`` if nothing is left out.
    """
    if limit is None and subset == "all":
        return source
    data = _divide(source, task, subset)
    return _write(data, _take(data, _draw_order(data), limit), source, directory)


def _divide_training(source: Path, settings: TaskSettings) -> DataFile:
    data = _divide(source, settings.task, settings.subset)
    num_units = sum(data.size(unit) > 0 for unit in data.units)
    if num_units < 2:
        raise InputError(
            f"{source} cannot be divided into examples to train on and examples that choose the "
            f"epoch: {num_units} of its units ({settings.task}: sentences, paragraphs, documents "
            "or texts) has an example; 2 are needed."
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


def _write(data: DataFile, indices: Sequence[int], source: Path, directory: Path) -> Path:
    """Write units in file order."""
    units: list[Any] = [data.units[index] for index in sorted(indices)]
    suffixes = [suffix for suffix in source.suffixes if suffix.lower() not in COMPRESSIONS]
    target = directory / f"{source.name.partition('.')[0]}{(suffixes or [''])[-1]}"
    with atomic_file(target) as temp_path:
        temp_path.write_text(data.join(units), encoding="utf-8")
    return target
