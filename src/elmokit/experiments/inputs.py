"""Inputs of an experiment: data sets, test files and a biLM."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import elmokit
from elmokit.config import to_dict
from elmokit.errors import FormatError, InputError
from elmokit.experiments.plan import MODEL_KEY
from elmokit.experiments.samples import SAMPLE_VERSION
from elmokit.experiments.settings import HELD_OUT_SHARE, MAX_HELD_OUT, TaskSettings
from elmokit.files.hashing import file_sha256
from elmokit.probes.data import SplitFiles, find_splits
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.task_bilm import TaskBiLM
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.run_dir import find_split
from elmokit.tasks.runs.scoring import check_labels
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import load_model

Found = TypeVar("Found")


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


def find_data(data_dir: Path, tasks: Sequence[TaskSettings]) -> dict[str, SplitFiles]:
    """Return the files of all data sets, by folder; an error names everything that is missing."""
    return _find_all(data_dir, tasks, find_splits, "one train… and one dev… file", option="--data")


def find_test_files(
    test_dir: Path, tasks: Sequence[TaskSettings], data: Mapping[str, SplitFiles], model: Path
) -> dict[str, HashedFile]:
    """Return the test files of all data sets, by folder, after reading each of them once.

    A folder has one file with ``test`` in its name, or a single file of any name.

    Raises:
        FileNotFoundError: if files are missing; names all of them.
        InputError: if a file is damaged or of another task.
    """
    found = _find_all(test_dir, tasks, _find_test_file, "one test… file", option="--test")
    tokenizer = TaskBiLM.open(InputSettings(embeddings="static"), str(model)).tokenizer
    for settings in tasks:
        task = find_task(settings.task).in_units(settings.units)
        path = found[settings.dataset]
        with _named(path, settings):
            examples = task.read(path, training=False, tokenize=tokenizer.tokenize)
            if not examples:
                raise InputError("it has no example.")
            if task.labels_are_answers and task.labels(examples):
                training = data[settings.dataset].train
                known = task.read(training, training=True, tokenize=tokenizer.tokenize)
                check_labels(path, task, task.labels(known), examples)
    return {dataset: HashedFile(path, file_sha256(path)) for dataset, path in found.items()}


def _find_all(
    directory: Path,
    tasks: Sequence[TaskSettings],
    find: Callable[[Path, Sequence[str]], Found],
    files: str,
    *,
    option: str,
) -> dict[str, Found]:
    """Return what ``find`` finds in the folder of each data set, or say what belongs there."""
    found, missing = {}, []
    for settings in tasks:
        folder = directory / settings.dataset
        if not folder.is_dir():
            missing.append(f"  {folder}: {settings.content}; {files}")
            continue
        try:
            found[settings.dataset] = find(folder, find_task(settings.task).suffixes)
        except (FileNotFoundError, InputError) as error:
            missing.append(f"  {without_advice(error)}")
    if missing:
        raise FileNotFoundError(
            "Data sets are missing or incomplete:\n"
            + "\n".join(missing)
            + f"\nGive the folder of all data sets with {option}, or fewer tasks with --tasks."
        )
    return found


def _find_test_file(folder: Path, suffixes: Sequence[str]) -> Path:
    files = [path for path in folder.iterdir() if path.is_file() and path.name[0] != "."]
    return files[0] if len(files) == 1 else find_split(folder, "test", suffixes)


@contextmanager
def _named(path: Path, settings: TaskSettings) -> Iterator[None]:
    """Say what belongs into a file that cannot be read."""
    try:
        yield
    except (FormatError, InputError) as error:
        raise InputError(
            f"--test: {path} is no test file of the task {settings.task} (expected: "
            f"{settings.content}): {error}"
        ) from error


def without_advice(error: Exception) -> str:
    """Return an error's message without its advice, which is about other commands."""
    return re.split(r"(?<=\.) (?:Name|Choose) ", str(error))[0]


def find_bilm(model: str | None) -> BiLMMetadata:
    """Load a biLM once and identify it."""
    path = find_model(model)
    loaded = load_model(path)
    metadata = {
        MODEL_KEY: loaded.model_hash(), "tokenizer": to_dict(loaded.tokenizer),
        "char_vocab": to_dict(loaded.char_vocab.config),
    }  # fmt: skip
    return BiLMMetadata(path, metadata[MODEL_KEY], metadata)


def task_metadata(
    settings: TaskSettings, files: SplitFiles, model: BiLMMetadata, vectors_hash: str
) -> dict[str, Any]:
    """Return what determines the result of a task besides its configuration."""
    return {
        "elmokit_version": elmokit.__version__,
        **model.metadata,
        "vectors": vectors_hash,
        "data": {
            "train": file_sha256(files.train), "dev": file_sha256(files.dev),
            "max_train": settings.max_train, "held_out": [HELD_OUT_SHARE, MAX_HELD_OUT],
            "subset": settings.subset, "sample": SAMPLE_VERSION,
        },
    }  # fmt: skip
