"""Inputs of an experiment: data sets and a biLM."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import elmokit
from elmokit.config import to_dict
from elmokit.errors import InputError
from elmokit.experiments.plan import MODEL_KEY
from elmokit.experiments.samples import SAMPLE_VERSION
from elmokit.experiments.settings import TaskSettings
from elmokit.files.hashing import file_sha256
from elmokit.probes.data import SplitFiles, find_splits
from elmokit.tasks.registry import find_task
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import load_model


@dataclass(frozen=True)
class BiLMMetadata:
    """A biLM and what identifies it."""

    path: Path
    hash: str
    """Hash of its weights."""
    metadata: dict[str, Any]
    """Part of a run's id; JSON-serializable."""


def find_data(data_dir: Path, tasks: Sequence[TaskSettings]) -> dict[str, SplitFiles]:
    """Return the files of all data sets, by folder; an error names everything that is missing."""
    found, missing = {}, []
    for settings in tasks:
        folder = data_dir / settings.dataset
        if not folder.is_dir():
            missing.append(f"  {folder}: {settings.content}; one train… and one dev… file")
            continue
        suffixes = find_task(settings.task).suffixes
        try:
            found[settings.dataset] = find_splits(folder, suffixes)
        except (FileNotFoundError, InputError) as error:
            missing.append(f"  {without_advice(error)}")
    if missing:
        raise FileNotFoundError(
            "Data sets are missing or incomplete:\n"
            + "\n".join(missing)
            + "\nGive the folder of all data sets with --data, or fewer tasks with --tasks."
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
            "max_train": settings.max_train, "max_dev": settings.max_dev,
            "subset": settings.subset, "sample": SAMPLE_VERSION,
        },
    }  # fmt: skip
