"""Settings and plans of the probes in tables 4, 5 and 6 of the paper.

A run measures one family of vectors: the layers of the biLM, those of an untrained biLM (one run
per seed), or static vectors.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import elmokit
from elmokit.errors import InputError
from elmokit.experiments.inputs import BiLMMetadata, without_advice
from elmokit.experiments.plan import PlannedRun, distinct
from elmokit.experiments.samples import SAMPLE_VERSION, sample_file
from elmokit.files.hashing import file_sha256
from elmokit.probes.data import find_sense_inventory
from elmokit.probes.probe import Probe

BILM, RANDOM, STATIC, EXAMPLES = "biLM", "random biLM", "static", "examples"
"""Families of vectors, and the example neighbors of table 4."""
POS_SENTENCES = 6000
"""Training sentences of the part-of-speech probe."""


@dataclass(frozen=True)
class DataFolder:
    """A folder of the data directory."""

    name: str
    content: str
    """What it must have, for error messages."""


SENSES = DataFolder(
    "wsd-en",
    "semcor.data.xml and semcor.gold.key.txt, the same two of a test set, and an inventory "
    "…senses.tsv, in the layout of Raganato et al.",
)


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """A probe in an experiment, and its data."""

    kind: str
    """Name in run ids and results."""
    probe: Probe
    data: DataFolder
    usual_test_set: str | None = None
    """Test set to use if the folder has several."""
    max_train: int | None = None
    """Number of training sentences to draw; none: all."""
    reference: str
    """Representation that the others are tested against."""
    families: tuple[str, ...] = (BILM, STATIC, RANDOM)

    def find(self, data_dir: Path) -> Any:
        """Return the files of the data set; an error says what belongs there."""
        folder = data_dir / self.data.name
        if not folder.is_dir():
            raise FileNotFoundError(
                f"A data set is missing:\n  {folder}: {self.data.content}\n"
                "Give the folder of all data sets with --data."
            )
        usual = self.usual_test_set
        there = usual and any(path.name.startswith(f"{usual}.") for path in folder.iterdir())
        try:
            return self.probe.find(folder, usual if there else None)
        except (FileNotFoundError, InputError) as error:
            message = f"{without_advice(error)} What belongs there: {self.data.content}."
            raise type(error)(message) from error

    def read(self, data_dir: Path, samples: Path) -> Any:
        """Read the data set; write a sample of its training set to ``samples``."""
        files = self.find(data_dir)
        if self.max_train is not None:
            small = sample_file(files.train, samples, task="pos", limit=self.max_train)
            files = replace(files, train=small)
        return self.probe.read(files, str.split, "words")


def plan_probe(
    settings: ProbeSettings, data_dir: Path, *, seeds: int, model: BiLMMetadata, vectors_hash: str
) -> list[PlannedRun]:
    """Return the runs of a probe: one per family; for untrained biLMs, one per seed."""
    settings.find(data_dir)
    folder = data_dir / settings.data.name
    if EXAMPLES in settings.families:
        find_sense_inventory(folder)
    files = {path.name: file_sha256(path) for path in sorted(folder.iterdir()) if path.is_file()}
    runs = []
    for family in settings.families:
        for seed in range(seeds if family == RANDOM else 1):
            metadata: dict[str, Any] = {
                "elmokit_version": elmokit.__version__, "family": family, "data": files,
                "sample": [SAMPLE_VERSION, POS_SENTENCES], "seed": seed,
            }  # fmt: skip
            if family != STATIC:
                metadata |= model.metadata
            if family in (STATIC, EXAMPLES):
                metadata["vectors"] = vectors_hash
            runs.append(PlannedRun(
                kind=settings.kind, task=settings.kind, dataset=settings.data.name,
                condition=family, seed=seed, metadata=metadata,
            ))  # fmt: skip
    return distinct(runs)
