"""The data sets of the probes: what a directory must hold, and reading it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from elmokit.errors import InputError
from elmokit.files.sources import COMPRESSIONS
from elmokit.tasks.formats.conll import TaggedSentence
from elmokit.tasks.formats.conllu import ConlluColumn, read_conllu
from elmokit.tasks.formats.records import first_named, read_records
from elmokit.tasks.formats.senses import (
    SenseInventory,
    SenseSentence,
    read_sense_inventory,
    read_senses,
)
from elmokit.tasks.formats.word_in_context import ContextPair, read_kobest_wic, read_wic
from elmokit.tasks.runs.run_dir import find_split

_TEXT, _KEYS, _INVENTORY = ".data.xml", ".gold.key.txt", "senses.tsv"
_TRAINING = "semcor"
_KOREAN_COLUMN = "SENTENCE1"


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Splits(Generic[T]):
    """The two parts of a data set: files, or what they hold."""

    train: T
    dev: T


SplitFiles = Splits[Path]


@dataclass(frozen=True, kw_only=True)
class AnnotatedText:
    """A text with annotated words, and the senses of the words."""

    text: Path
    keys: Path

    def read(self) -> list[SenseSentence]:
        """Return the sentences; raises `FormatError` for damaged files."""
        return list(read_senses(self.text, self.keys))


@dataclass(frozen=True, kw_only=True)
class SenseFiles:
    """The files of a data set of word senses."""

    train: AnnotatedText
    test: AnnotatedText
    inventory: Path


@dataclass(frozen=True, kw_only=True)
class SenseData:
    """Sentences with annotated words, and the senses of words."""

    train: list[SenseSentence]
    test: list[SenseSentence]
    inventory: SenseInventory


def find_splits(data: Path, suffixes: Sequence[str] = ()) -> SplitFiles:
    """Return the files ``…train…`` and ``…dev…`` of a directory.

    Raises:
        FileNotFoundError: if one is missing.
        InputError: if several files have the name.
    """
    train, dev = (find_split(data, split, suffixes) for split in ("train", "dev"))
    return Splits(train=train, dev=dev)


def read_pos_data(
    data: Path | SplitFiles, *, column: ConlluColumn = "upos"
) -> Splits[list[TaggedSentence]]:
    """Read the CoNLL-U files ``…train….conllu`` and ``…dev….conllu`` of a directory.

    Args:
        data: The directory, or the two files.
        column: With the tags.

    Raises:
        FileNotFoundError: if one is missing.
        FormatError: if one is damaged.
        InputError: if several files have the name.
    """
    files = find_splits(data, (".conllu",)) if isinstance(data, Path) else data
    train, dev = (list(read_conllu(path, column=column)) for path in (files.train, files.dev))
    return Splits(train=train, dev=dev)


def find_sense_files(data: Path, test: str | None = None) -> SenseFiles:
    """Return the files of a directory in the layout of Raganato et al. 2017.

    It holds ``semcor.data.xml`` with ``semcor.gold.key.txt``, the same two of a test set, and the
    inventory, a table whose name ends in ``senses.tsv``; each may be compressed.

    Args:
        data: The directory.
        test: Name of the test set (``semeval2007``), needed if there are several.

    Raises:
        FileNotFoundError: if one is missing.
        InputError: if there are several test sets and none is named.
    """
    training = find_sense_corpus(data)
    tests = sorted(
        name.removesuffix(_TEXT)
        for name in _files(data)
        if name.endswith(_TEXT) and name != _TRAINING + _TEXT
    )
    if not tests:
        raise FileNotFoundError(f"{data} has no test set: a NAME{_TEXT} with NAME{_KEYS}.")
    if test not in tests and (test is not None or len(tests) > 1):
        asked = "there are several test sets" if test is None else f"there is no test set {test!r}"
        raise InputError(f"{data}: {asked}. Choose one of {', '.join(tests)} with --test.")
    return SenseFiles(
        train=training,
        test=_annotated(data, tests[0] if test is None else test),
        inventory=_only(data, _INVENTORY),
    )


def read_sense_data(data: Path | SenseFiles, *, test: str | None = None) -> SenseData:
    """Read what `find_sense_files` finds in a directory.

    Args:
        data: The directory, or the files.
        test: Name of the test set, needed if there are several.

    Raises:
        FileNotFoundError: if a file is missing.
        FormatError: if one is damaged.
        InputError: if there are several test sets and none is named.
    """
    files = find_sense_files(data, test) if isinstance(data, Path) else data
    return SenseData(
        train=files.train.read(),
        test=files.test.read(),
        inventory=read_sense_inventory(files.inventory),
    )


def find_sense_corpus(data: Path) -> AnnotatedText:
    """Return ``semcor.data.xml`` and its keys.

    Raises:
        FileNotFoundError: if one is missing.
    """
    return _annotated(data, _TRAINING)


def read_wic_data(data: Path | SplitFiles) -> Splits[list[ContextPair]]:
    """Read the pairs of MCL-WiC (offsets) or KoBEST (marks) in a directory, by their columns.

    Raises:
        FileNotFoundError: if the file of train or dev is missing.
        FormatError: if one is damaged.
        InputError: if several files have the name.
    """
    files = find_splits(data) if isinstance(data, Path) else data
    return Splits(train=_read_pairs(files.train), dev=_read_pairs(files.dev))


def _read_pairs(path: Path) -> list[ContextPair]:
    column = first_named(read_records(path), ("sentence1", _KOREAN_COLUMN))
    read = read_kobest_wic if column == _KOREAN_COLUMN else read_wic
    return list(read(path))


def _annotated(data: Path, name: str) -> AnnotatedText:
    files = _files(data)
    for file in (name + _TEXT, name + _KEYS):
        if file not in files:
            raise FileNotFoundError(f"{data} has no {file}, plain or compressed.")
    return AnnotatedText(text=files[name + _TEXT], keys=files[name + _KEYS])


def _only(data: Path, ending: str) -> Path:
    found = [path for name, path in _files(data).items() if name.endswith(ending)]
    if len(found) != 1:
        raise FileNotFoundError(
            f"{data} needs one file whose name ends in {ending} (columns lemma, pos, rank, "
            f"sense_key, synset, gloss); it has {len(found)}."
        )
    return found[0]


def _files(data: Path) -> dict[str, Path]:
    """Return the files of a directory by their names without the suffix of a compression."""
    if not data.is_dir():
        raise FileNotFoundError(f"There is no directory {data}. Give that of the probe's data.")
    names = {}
    for path in sorted(data.iterdir()):
        if path.is_file():
            ending = path.suffix if path.suffix in COMPRESSIONS else ""
            names[path.name.removesuffix(ending)] = path
    return names
