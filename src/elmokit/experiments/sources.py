"""What an experiment reads: data sets in one folder, a biLM, static word vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import elmokit
from elmokit.config import to_dict
from elmokit.errors import InputError
from elmokit.experiments.plan import MODEL_FACT
from elmokit.experiments.samples import SAMPLE_VERSION
from elmokit.experiments.settings import TaskSettings
from elmokit.files.hashing import file_sha256
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.run_dir import find_split
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import load_model


@dataclass(frozen=True)
class ModelFacts:
    """A biLM as far as it decides results."""

    path: Path
    hash: str
    """Of its weights."""
    facts: dict[str, Any]
    """JSON-able, for the id of a run."""


@dataclass(frozen=True)
class DataFiles:
    """The two files of a data set."""

    train: Path
    dev: Path


def find_data(data_dir: Path, tasks: Sequence[TaskSettings]) -> dict[str, DataFiles]:
    """Return the files of all data sets, by their folder.

    Raises:
        FileNotFoundError: if one is missing, with all that are and what belongs there.
        InputError: for a task that there is not.
    """
    found, missing = {}, []
    for settings in tasks:
        folder = data_dir / settings.dataset
        if not folder.is_dir():
            missing.append(f"  {folder}: {settings.content}; one train… and one dev… file")
            continue
        suffixes = find_task(settings.task).suffixes
        try:
            found[settings.dataset] = DataFiles(
                *(find_split(folder, split, suffixes) for split in ("train", "dev"))
            )
        except (FileNotFoundError, InputError) as error:
            missing.append(f"  {str(error).partition('. Name ')[0].partition(' Name ')[0]}")
    if missing:
        raise FileNotFoundError(
            "Data sets are missing, or not as they should be:\n"
            + "\n".join(missing)
            + "\nGive the folder of all data sets with --data, or fewer tasks with --tasks."
        )
    return found


def find_bilm(model: str | None) -> ModelFacts:
    """Load a biLM once, to know what it is.

    Raises:
        FileNotFoundError: if there is none.
        FormatError: if it is damaged.
    """
    path = find_model(model)
    loaded = load_model(path)
    facts = {
        MODEL_FACT: loaded.model_hash(),
        "tokenizer": to_dict(loaded.tokenizer),
        "char_vocab": to_dict(loaded.char_vocab.config),
    }
    return ModelFacts(path, facts[MODEL_FACT], facts)


def deciding_facts(
    settings: TaskSettings, files: DataFiles, model: ModelFacts, vectors_hash: str
) -> dict[str, Any]:
    """Return what decides a task run beside its configuration."""
    return {
        "elmokit_version": elmokit.__version__,
        **model.facts,
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
