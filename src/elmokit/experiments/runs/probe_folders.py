"""What the folders of the probes must hold, checked before anything is computed."""

from pathlib import Path

from elmokit.errors import InputError
from elmokit.files.sources import COMPRESSIONS
from elmokit.tasks.runs.run_dir import find_split

TRAINING_SET = "semcor"
USUAL_TEST_SET = "semeval2007"
"""That is taken where there are several."""
_TEXT, _KEYS, _INVENTORY = ".data.xml", ".gold.key.txt", "senses.tsv"


def check_pos_folder(folder: Path) -> None:
    """Refuse a folder without a train and a dev file.

    Raises:
        FileNotFoundError: if one is missing.
        InputError: if several could be meant.
    """
    for split in ("train", "dev"):
        find_split(folder, split, (".conllu",))


def check_corpus_folder(folder: Path) -> None:
    """Refuse a folder without the annotated training text.

    Raises:
        FileNotFoundError: if the text or its keys are missing.
    """
    _check_pair(folder, TRAINING_SET)


def check_sense_folder(folder: Path) -> None:
    """Refuse a folder without training text, a test set or an inventory.

    Raises:
        FileNotFoundError: if one is missing.
        InputError: if several test sets could be meant.
    """
    _check_pair(folder, TRAINING_SET)
    _check_pair(folder, find_test_set(folder))
    inventories = sum(name.endswith(_INVENTORY) for name in _plain_names(folder))
    if inventories != 1:
        raise FileNotFoundError(
            f"{folder} needs one file whose name ends in {_INVENTORY}; it has {inventories}."
        )


def find_test_set(folder: Path) -> str:
    """Return the name of the test set: the only one, or of several `USUAL_TEST_SET`.

    Raises:
        FileNotFoundError: if there is none.
        InputError: if there are several, and that one is not among them.
    """
    names = {name.removesuffix(_TEXT) for name in _plain_names(folder) if name.endswith(_TEXT)}
    tests = sorted(names - {TRAINING_SET})
    if not tests:
        raise FileNotFoundError(f"{folder} has no test set: a NAME{_TEXT} with NAME{_KEYS}.")
    if len(tests) == 1:
        return tests[0]
    if USUAL_TEST_SET not in tests:
        raise InputError(
            f"{folder} has several test sets: {', '.join(tests)}. Leave one there, or add "
            f"{USUAL_TEST_SET}, which is taken of several."
        )
    return USUAL_TEST_SET


def _check_pair(folder: Path, name: str) -> None:
    there = _plain_names(folder)
    for file in (name + _TEXT, name + _KEYS):
        if file not in there:
            raise FileNotFoundError(f"{folder} has no {file}, plain or compressed.")


def _plain_names(folder: Path) -> set[str]:
    """Return the names of the files without the ending of a compression."""
    names = set()
    for path in folder.iterdir():
        if path.is_file():
            ending = path.suffix if path.suffix in COMPRESSIONS else ""
            names.add(path.name.removesuffix(ending))
    return names
