"""The data sets of the probes: the files of a directory, and reading them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from elmokit.errors import InputError
from elmokit.files.sources import COMPRESSIONS
from elmokit.tasks.formats import senses
from elmokit.tasks.formats.conll import TaggedSentence
from elmokit.tasks.formats.conllu import ConlluColumn, read_conllu, read_morphemes
from elmokit.tasks.formats.reading import find_split
from elmokit.tasks.formats.records import first_named, read_records
from elmokit.tasks.formats.word_in_context import (
    LABELS_APART,
    ContextPair,
    read_kobest_wic,
    read_wic,
)
from elmokit.tasks.task import Units

_TEXT, _KEYS, _INVENTORY = ".data.xml", ".gold.key.txt", "senses.tsv"
_TRAINING = "semcor"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Splits(Generic[T]):
    """The two parts of a data set: files, or their content."""

    train: T
    dev: T


SplitFiles = Splits[Path]


@dataclass(frozen=True, kw_only=True)
class AnnotatedText:
    name: str
    """What both names begin with, such as ``semeval2007``."""
    text: Path
    keys: Path

    def read(self) -> list[senses.SenseSentence]:
        return list(senses.read_senses(self.text, self.keys))


class SenseFiles(NamedTuple):
    train: AnnotatedText
    test: AnnotatedText
    inventory: Path


class SenseData(NamedTuple):
    train: list[senses.SenseSentence]
    test: list[senses.SenseSentence]
    inventory: senses.SenseInventory


def find_splits(data: Path, suffixes: Sequence[str] = ()) -> SplitFiles:
    """Return the files ``…train…`` and ``…dev…`` of a directory."""
    train, dev = (find_split(data, split, suffixes) for split in ("train", "dev"))
    return Splits(train=train, dev=dev)


def read_pos_data(
    data: Path | SplitFiles, *, column: ConlluColumn = "upos", units: Units = "words"
) -> Splits[list[TaggedSentence]]:
    """Read CoNLL-U; ``column`` has the tags of words, morphemes have theirs in columns 3 and 5."""
    files = find_splits(data, (".conllu",)) if isinstance(data, Path) else data
    train, dev = (
        list(read_morphemes(path) if units == "morphemes" else read_conllu(path, column=column))
        for path in (files.train, files.dev)
    )
    return Splits(train=train, dev=dev)


def find_sense_files(data: Path, test: str | None = None) -> SenseFiles:
    """Return the files of a directory laid out as by Raganato et al. 2017, maybe compressed.

    ``semcor.data.xml``, ``semcor.gold.key.txt``, the same of a test set, and ``…senses.tsv``.
    """
    train = find_sense_corpus(data)
    names = [name.removesuffix(_TEXT) for name in _files(data) if name.endswith(_TEXT)]
    tests = sorted(name for name in names if name != _TRAINING)
    if not tests:
        raise FileNotFoundError(f"{data} has no test set: a NAME{_TEXT} with NAME{_KEYS}.")
    if test not in tests and (test is not None or len(tests) > 1):
        raise InputError(f"{data}: choose one of the test sets {', '.join(tests)} with --test.")
    return SenseFiles(train, _annotated(data, test or tests[0]), find_sense_inventory(data))


def read_sense_data(data: Path | SenseFiles, *, test: str | None = None) -> SenseData:
    files = find_sense_files(data, test) if isinstance(data, Path) else data
    inventory = senses.read_sense_inventory(files.inventory)
    return SenseData(files.train.read(), files.test.read(), inventory)


def find_sense_corpus(data: Path) -> AnnotatedText:
    return _annotated(data, _TRAINING)


def find_sense_inventory(data: Path) -> Path:
    paths = [path for name, path in _files(data).items() if name.endswith(_INVENTORY)]
    if len(paths) != 1:
        raise FileNotFoundError(f"{data} needs one …{_INVENTORY}, and has {len(paths)}.")
    return paths[0]


def lemma_of(occurrence: senses.SenseOccurrence) -> str:
    """Return the lemma in lower case, with spaces between the words of an expression."""
    return occurrence.lemma.replace("_", " ").lower()


def read_wic_data(data: Path | SplitFiles) -> Splits[list[ContextPair]]:
    """Read pairs of WiC and MCL-WiC (offsets) or KoBEST (marks), told apart by their columns."""
    files = find_splits(data, (LABELS_APART,)) if isinstance(data, Path) else data
    return Splits(train=_read_pairs(files.train), dev=_read_pairs(files.dev))


def _read_pairs(path: Path) -> list[ContextPair]:
    if LABELS_APART in path.suffixes:
        return list(read_wic(path))
    column = first_named(read_records(path), ("sentence1", "SENTENCE1"))
    return list(read_wic(path) if column == "sentence1" else read_kobest_wic(path))


def _annotated(data: Path, name: str) -> AnnotatedText:
    files = _files(data)
    for file in (name + _TEXT, name + _KEYS):
        if file not in files:
            raise FileNotFoundError(f"{data} has no {file}, plain or compressed.")
    return AnnotatedText(name=name, text=files[name + _TEXT], keys=files[name + _KEYS])


def _files(data: Path) -> dict[str, Path]:
    """Return the files of a directory by their names without compression suffixes."""
    if not data.is_dir():
        raise FileNotFoundError(f"There is no directory {data}. Give the probe's data directory.")
    files = [path for path in sorted(data.iterdir()) if path.is_file()]
    return {path.stem if path.suffix.lower() in COMPRESSIONS else path.name: path for path in files}
