"""Experiments that train no task model: tables 4, 5 and 6 of the paper.

A run reads the data with one family of vectors: the biLM's layers, those of an untrained biLM (a
seed each), or static vectors.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import elmokit
from elmokit.errors import InputError
from elmokit.experiments.plan import PlannedRun, check_distinct
from elmokit.experiments.runs.probe_folders import (
    check_corpus_folder,
    check_pos_folder,
    check_sense_folder,
    find_test_set,
)
from elmokit.experiments.samples import SAMPLE_VERSION, sample_file
from elmokit.experiments.sources import ModelFacts
from elmokit.files.hashing import file_sha256
from elmokit.metrics.accuracy import accuracy_of
from elmokit.metrics.significance import ScoreFunction
from elmokit.metrics.span_f1 import f1_of
from elmokit.probes.data import read_sense_corpus, read_sense_data
from elmokit.probes.pos import probe_pos
from elmokit.probes.sense_neighbors import precision_at_k
from elmokit.probes.vector_sources import VectorSource
from elmokit.probes.wsd import disambiguate
from elmokit.tasks.formats.conllu import read_conllu
from elmokit.tasks.runs.run_dir import find_split

BILM, RANDOM, STATIC, EXAMPLES = "biLM", "random biLM", "static", "examples"
"""Families of vectors, and the neighbors of table 4 as words."""
POS_SENTENCES = 6000
"""Sentences of the training set that the part-of-speech probe learns from."""
MeasuredScores = tuple[Any, ...]
Words = set[str]


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What is measured of each representation."""

    kind: str
    dataset: str
    content: str
    """What the folder must hold."""
    check: Callable[[Path], None]
    """Refuses a folder that does not hold it."""
    columns: Mapping[str, str]
    """Fields of a score that are shown, and their titles; the first is the main number."""
    counts: str
    """Field with the counts behind the main number."""
    score: ScoreFunction
    reference: str
    """Name of the representation that others are tested against."""
    families: tuple[str, ...]
    measure: Callable[[Sequence[VectorSource], Any], MeasuredScores]
    read: Callable[[Path, Path], Any]
    """Reads the folder; the second path is for samples."""
    words: Callable[[Any], Words]
    """All words of the data, which may need a static vector."""


@dataclass(frozen=True)
class _PosSentences:
    train: list[Any]
    dev: list[Any]


def _read_pos(folder: Path, samples: Path) -> _PosSentences:
    train = find_split(folder, "train", (".conllu",))
    small = sample_file(train, samples, task="pos", limit=POS_SENTENCES)
    dev = find_split(folder, "dev", (".conllu",))
    return _PosSentences(list(read_conllu(small)), list(read_conllu(dev)))


def _words_of(*lists: Sequence[Any]) -> Words:
    return {word for sentences in lists for sentence in sentences for word in sentence.tokens}


POS_PROBE = Probe(
    kind="pos_probe",
    dataset="ud-en-ewt",
    content="UD English-EWT, CoNLL-U; one train… and one dev… file",
    check=check_pos_folder,
    columns={"accuracy": "accuracy", "seen": "seen words", "unseen": "unseen words"},
    counts="counts",
    score=accuracy_of,
    reference="static",
    families=(BILM, STATIC, RANDOM),
    measure=lambda sources, data: probe_pos(sources, data.train, data.dev),
    read=_read_pos,
    words=lambda data: _words_of(data.train, data.dev),
)
_SENSE_CONTENT = (
    "semcor.data.xml and semcor.gold.key.txt, the same two of a test set, and an inventory "
    "…senses.tsv, in the layout of Raganato et al."
)
WSD_PROBE = Probe(
    kind="wsd_probe",
    dataset="wsd-en",
    content=_SENSE_CONTENT,
    check=check_sense_folder,
    columns={"f1": "F1", "num_instances": "words", "num_backed_off": "by the first sense"},
    counts="counts",
    score=f1_of,
    reference="first sense",
    families=(BILM, STATIC, RANDOM),
    measure=lambda sources, data: disambiguate(sources, data.training, data.test, data.inventory),
    read=lambda folder, samples: read_sense_data(folder, test=find_test_set(folder)),
    words=lambda data: _words_of(data.training, data.test),
)
NEIGHBOR_PROBE = Probe(
    kind="neighbor_probe",
    dataset="wsd-en",
    content=_SENSE_CONTENT,
    check=check_corpus_folder,
    columns={
        "sense": "same sense", "sense_chance": "by chance",
        "pos": "same part of speech", "pos_chance": "by chance ",
    },
    counts="sense_counts",
    score=accuracy_of,
    reference="layer 0",
    families=(BILM, STATIC, RANDOM, EXAMPLES),
    measure=lambda sources, data: precision_at_k(sources, data),
    read=lambda folder, samples: read_sense_corpus(folder),
    words=lambda data: _words_of(data),
)  # fmt: skip


def plan_probe(
    probe: Probe, data_dir: Path, *, seeds: int, model: ModelFacts, vectors_hash: str
) -> list[PlannedRun]:
    """Return the runs of a probe: one a family, of untrained biLMs one a seed.

    Raises:
        FileNotFoundError: if the folder is missing, or something in it.
        InputError: if several files could be meant.
    """
    folder = data_dir / probe.dataset
    if not folder.is_dir():
        raise FileNotFoundError(
            f"A data set is missing:\n  {folder}: {probe.content}\nGive the folder of all data "
            "sets with --data."
        )
    try:
        probe.check(folder)
    except (FileNotFoundError, InputError) as error:
        # without the options of other commands, as for the tasks' data
        reason = str(error).partition(" Name ")[0]
        raise type(error)(f"{reason} What belongs there: {probe.content}.") from error
    files = {path.name: file_sha256(path) for path in sorted(folder.iterdir()) if path.is_file()}
    runs = []
    for family in probe.families:
        for seed in range(seeds if family == RANDOM else 1):
            facts: dict[str, Any] = {
                "elmokit_version": elmokit.__version__, "family": family, "data": files,
                "sample": [SAMPLE_VERSION, POS_SENTENCES], "seed": seed,
            }  # fmt: skip
            if family != STATIC:
                facts |= model.facts
            if family in (STATIC, EXAMPLES):
                facts["vectors"] = vectors_hash
            runs.append(
                PlannedRun(
                    kind=probe.kind, task=probe.kind, dataset=probe.dataset, condition=family,
                    seed=seed, facts=facts,
                )
            )  # fmt: skip
    check_distinct(runs)
    return runs
