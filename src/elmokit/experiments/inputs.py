"""Inputs of an experiment: data sets and a biLM."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import elmokit
from elmokit.config import to_dict
from elmokit.errors import InputError
from elmokit.experiments.plan import MODEL_KEY
from elmokit.experiments.samples import SAMPLE_VERSION, check_training_set
from elmokit.experiments.settings import HELD_OUT_SHARE, MAX_HELD_OUT, TaskSettings
from elmokit.files.hashing import file_sha256
from elmokit.probes.data import SplitFiles, find_splits
from elmokit.tasks.registry import find_task
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


def find_data(data_dir: Path, tasks: Sequence[TaskSettings]) -> dict[str, SplitFiles]:
    """Return the files of all data sets, by folder, after dividing each training set once.

    Raises:
        FileNotFoundError: if files are missing; names all of them.
        FormatError: if a training set is damaged.
        InputError: if it cannot be divided.
    """
    found = find_all(data_dir, tasks, find_splits, "one train… and one dev… file", option="--data")
    for one in tasks:
        check_training_set(found[one.dataset].train, task=one.task, subset=one.subset)
    return found


def find_all(
    directory: Path,
    tasks: Sequence[TaskSettings],
    find: Callable[[Path, Sequence[str]], Found],
    files: str,
    *,
    option: str,
) -> dict[str, Found]:
    """Return what ``find`` finds in the folder of each data set, or say what belongs there."""
    if directory.exists() and not directory.is_dir():
        raise InputError(
            f"{option}: {directory} is not a directory. Give the folder that has a folder for each "
            "data set."
        )
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
