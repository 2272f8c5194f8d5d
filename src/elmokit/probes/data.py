"""The data sets of the probes: what a directory must hold, and reading it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True, kw_only=True)
class PosData:
    """Tagged sentences."""

    train: list[TaggedSentence]
    dev: list[TaggedSentence]


@dataclass(frozen=True, kw_only=True)
class SenseData:
    """Text with annotated words, and the senses of words."""

    training: list[SenseSentence]
    test: list[SenseSentence]
    inventory: SenseInventory


@dataclass(frozen=True, kw_only=True)
class WicData:
    """Pairs of texts with a word in common."""

    train: list[ContextPair]
    dev: list[ContextPair]


def read_pos_data(data: Path, *, column: ConlluColumn = "upos") -> PosData:
    """Read the CoNLL-U files ``…train….conllu`` and ``…dev….conllu`` of a directory.

    Args:
        data: The directory.
        column: With the tags.

    Raises:
        FileNotFoundError: if one is missing.
        FormatError: if one is damaged.
        InputError: if several files have the name.
    """
    train, dev = (
        list(read_conllu(find_split(data, split, (".conllu",)), column=column))
        for split in ("train", "dev")
    )
    return PosData(train=train, dev=dev)


def read_sense_data(data: Path, *, test: str | None = None) -> SenseData:
    """Read a directory in the layout of Raganato et al. 2017.

    It holds ``semcor.data.xml`` with ``semcor.gold.key.txt``, the same two of a test set, and the
    inventory, a table whose name ends in ``senses.tsv``; each may be compressed.

    Args:
        data: The directory.
        test: Name of the test set (``semeval2007``), needed if there are several.

    Raises:
        FileNotFoundError: if one is missing.
        FormatError: if one is damaged.
        InputError: if there are several test sets and none is named.
    """
    sets = _text_files(data)
    training, test_text = sets.pop(_TRAINING, None), None
    if training is not None and (test in sets or (test is None and len(sets) == 1)):
        test_text = sets[test or next(iter(sets))]
    if training is None or not sets:
        raise FileNotFoundError(
            f"{data} needs {_TRAINING}{_TEXT} and {_TRAINING}{_KEYS}, the same two of a test set, "
            f"and an inventory …{_INVENTORY}; it has {_listed(sets)}."
        )
    if test_text is None:
        asked = "there are several" if test is None else f"there is no test set {test!r}"
        raise InputError(f"{data}: {asked}; choose one of {_listed(sets)} with --test.")
    inventory = _only(data, _INVENTORY)
    return SenseData(
        training=list(read_senses(training, _keys_of(training))),
        test=list(read_senses(test_text, _keys_of(test_text))),
        inventory=read_sense_inventory(inventory),
    )


def read_sense_corpus(data: Path) -> list[SenseSentence]:
    """Read ``semcor.data.xml`` and its keys, without the rest of the directory.

    Raises:
        FileNotFoundError: if one is missing.
        FormatError: if one is damaged.
    """
    training = _text_files(data).get(_TRAINING)
    if training is None:
        raise FileNotFoundError(f"{data} needs {_TRAINING}{_TEXT} and {_TRAINING}{_KEYS}.")
    return list(read_senses(training, _keys_of(training)))


def read_wic_data(data: Path) -> WicData:
    """Read the pairs of MCL-WiC (offsets) or KoBEST (marks) in a directory, by their columns.

    Raises:
        FileNotFoundError: if the file of train or dev is missing.
        FormatError: if one is damaged.
        InputError: if several files have the name.
    """
    train, dev = (_read_pairs(find_split(data, split)) for split in ("train", "dev"))
    return WicData(train=train, dev=dev)


def _read_pairs(path: Path) -> list[ContextPair]:
    column = first_named(read_records(path), ("sentence1", _KOREAN_COLUMN))
    read = read_kobest_wic if column == _KOREAN_COLUMN else read_wic
    return list(read(path))


def _text_files(data: Path) -> dict[str, Path]:
    """Return the annotated texts of a directory by the names of their sets."""
    return {
        _plain_name(path).removesuffix(_TEXT): path
        for path in _files(data)
        if _plain_name(path).endswith(_TEXT)
    }


def _keys_of(text: Path) -> Path:
    name = _plain_name(text).removesuffix(_TEXT) + _KEYS
    found = [path for path in _files(text.parent) if _plain_name(path) == name]
    if not found:
        raise FileNotFoundError(f"{text} has no gold keys: there is no {name} beside it.")
    return found[0]


def _only(data: Path, ending: str) -> Path:
    found = [path for path in _files(data) if _plain_name(path).endswith(ending)]
    if len(found) != 1:
        raise FileNotFoundError(
            f"{data} needs one file whose name ends in {ending} (columns lemma, pos, rank, "
            f"sense_key, synset, gloss); it has {len(found)}."
        )
    return found[0]


def _files(data: Path) -> list[Path]:
    if not data.is_dir():
        raise FileNotFoundError(f"There is no directory {data}. Give that of the probe's data.")
    return sorted(path for path in data.iterdir() if path.is_file())


def _plain_name(path: Path) -> str:
    """Return the file's name without the ending of a compression."""
    name = path.name
    for ending in COMPRESSIONS:
        name = name.removesuffix(ending)
    return name


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
