"""What an experiment reads: data sets in one folder, a biLM, static word vectors."""

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
    """What identifies a biLM."""

    path: Path
    hash: str
    """Of its weights."""
    metadata: dict[str, Any]
    """JSON-able, for the id of a run."""


def find_data(data_dir: Path, tasks: Sequence[TaskSettings]) -> dict[str, SplitFiles]:
    """Return the files of all data sets, by folder.

    Raises:
        FileNotFoundError: naming everything that is missing, and what belongs there.
        InputError: for an unknown task.
    """
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
    """Return the message of an error up to its advice, which is about other commands."""
    return re.split(r"(?<=\.) (?:Name|Choose) ", str(error))[0]


def find_bilm(model: str | None) -> BiLMMetadata:
    """Load a biLM once and identify it.

    Raises:
        FileNotFoundError: if there is none.
        FormatError: if it is damaged.
    """
    path = find_model(model)
    loaded = load_model(path)
    metadata = {
        MODEL_KEY: loaded.model_hash(),
        "tokenizer": to_dict(loaded.tokenizer),
        "char_vocab": to_dict(loaded.char_vocab.config),
    }
    return BiLMMetadata(path, metadata[MODEL_KEY], metadata)


def task_metadata(
    settings: TaskSettings, files: SplitFiles, model: BiLMMetadata, vectors_hash: str
) -> dict[str, Any]:
    """Return what decides the result of a task besides its configuration."""
    return {
        "elmokit_version": elmokit.__version__,
        **model.metadata,
        "vectors": vectors_hash,
        "data": {
            "train": file_sha256(files.train),
            "dev": file_sha256(files.dev),
            "max_train": settings.max_train,
            "max_dev": settings.max_dev,
            "subset": settings.subset,
            "sample": SAMPLE_VERSION,
        },
    }
