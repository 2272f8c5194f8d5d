"""The kinds of foreign models that are read, and which of them a source is.

A new kind is a function that recognizes it, one that reads it, and a line in `FORMATS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from elmokit.errors import FormatError, InputError
from elmokit.weights.readers import tensorflow
from elmokit.weights.readers.contents import (
    Choices,
    Contents,
    ImportedModel,
    kind_of,
    open_contents,
)
from elmokit.weights.readers.tensor_bundle import INDEX_SUFFIX

WEIGHT_KINDS = ("HDF5", "TensorFlow index", "PyTorch")
ARCHIVED_FILES = "fta"
"""AllenNLP's folder of files that its configuration names."""


@dataclass(frozen=True, kw_only=True)
class ForeignFormat:
    """Models of other software."""

    name: str
    files: str
    """What such a model consists of."""
    recognizes: Callable[[Contents], bool]
    read: Callable[[Contents], ImportedModel]
    choices: tuple[str, ...] = ()
    """Which of vocab, softmax and name can be chosen for it."""


def _by_torch(module: str) -> Callable[[Contents], ImportedModel]:
    """Return the reader in a module that is imported when it reads: it needs PyTorch."""
    return lambda contents: import_module(f"elmokit.weights.readers.{module}").read(contents)


FORMATS = (
    ForeignFormat(
        name="bilm-tf release", files="options.json and HDF5 weights", choices=("vocab", "softmax"),
        recognizes=lambda contents: bool(contents.of("HDF5")), read=tensorflow.read_release,
    ),
    ForeignFormat(
        name="TF-Hub module", files="saved_model.pb and variables/",
        recognizes=tensorflow.recognizes_hub, read=tensorflow.read_hub,
    ),
    ForeignFormat(
        name="bilm-tf checkpoint", choices=("vocab", "softmax"),
        files="options.json, vocabulary, *.index and *.data-00000-of-00001",
        recognizes=lambda contents: bool(contents.of("TensorFlow index")),
        read=tensorflow.read_checkpoint,
    ),
    ForeignFormat(
        name="ELMoForManyLangs folder",
        files="encoder.pkl, token_embedder.pkl, char.dic, word.dic, config.json",
        recognizes=lambda contents: bool(contents.of("PyTorch") and contents.of("id list")),
        read=_by_torch("many_langs"),
    ),
    ForeignFormat(
        name="AllenNLP archive", files="config.json and weights.th", choices=("name",),
        recognizes=lambda contents: bool(contents.of("PyTorch")), read=_by_torch("allennlp"),
    ),
)  # fmt: skip
"""In this order the first that recognizes a source reads it."""


def read_foreign(source: Path, choices: Choices, *, scratch: Path) -> tuple[str, ImportedModel]:
    """Find out what a source is by its contents, and read it; return the format's name, too.

    ``source`` is a folder, one of its files, or a zip or tar archive of one; ``scratch`` a folder
    on a disk with room for an unpacked archive.
    """
    with open_contents(source, choices, scratch=scratch) as contents:
        contents = _of_one_kind(contents)
        format_ = next((known for known in FORMATS if known.recognizes(contents)), None)
        if format_ is None:
            kinds = "; ".join(f"{known.name} ({known.files})" for known in FORMATS)
            raise FormatError(
                f"{contents.folder} is not a known model. It holds {contents.summary()}. What "
                f"is read: {kinds}; a zip or tar archive of one of these; a model directory."
                + "".join(f" Give the archive: {path}." for path in contents.of("archive")[:1])
            )
        for option in ("vocab", "softmax", "name"):
            if getattr(choices, option) is not None and option not in format_.choices:
                raise InputError(f"{source}: a {format_.name} has no use for --{option}.")
        imported = format_.read(contents)
        if choices.encoder_only:
            imported = replace(imported, model=imported.model.encoder())
        return format_.name, imported


def _of_one_kind(contents: Contents) -> Contents:
    """Leave out weights of other kinds than the chosen ones; refuse several without a choice."""
    kinds, weights = contents.kinds, contents.choices.weights
    if "PyTorch" in kinds.values():  # AllenNLP archives what the ELMo was first read from
        archived = contents.folder / ARCHIVED_FILES
        kinds = {
            path: kind
            for path, kind in kinds.items()
            if kind not in WEIGHT_KINDS or archived not in path.parents
        }
    if len({*WEIGHT_KINDS}.intersection(kinds.values())) > 1:
        chosen = None if weights is None else contents.folder / f"{weights}{INDEX_SUFFIX}"
        if chosen is None or not chosen.exists():  # a checkpoint goes by the name of no file
            chosen = contents.given("weights")
        if chosen is None:
            raise FormatError(
                f"{contents.folder} holds models of several kinds: {contents.summary()}. Choose "
                "one with --weights."
            )
        others = {*WEIGHT_KINDS} - {kind_of(chosen)}
        kinds = {path: kind for path, kind in kinds.items() if kind not in others}
    return replace(contents, kinds=kinds)
