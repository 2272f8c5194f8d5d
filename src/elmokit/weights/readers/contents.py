"""The files of a model, told apart by what is in them: names in the wild mean little."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from elmokit.errors import ConfigError, FormatError, InputError, MissingExtraError
from elmokit.files.archives import archive_kind, unpack
from elmokit.files.json_files import is_json, parse_json
from elmokit.files.lines import MAX_SETTINGS_BYTES, read_whole
from elmokit.files.sources import COMPRESSIONS, read_pieces
from elmokit.files.temporary import temporary_directory
from elmokit.text.char_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD
from elmokit.weights.readers.tensor_bundle import TABLE_MAGIC
from elmokit.weights.stored_bilm import StoredBiLM

ModelFileKind = Literal[
    "HDF5", "TensorFlow index", "PyTorch", "options", "JSON", "id list", "word list", "archive",
    "other",
]  # fmt: skip
"""``options``: JSON with the table ``lstm``. ``JSON``: any other file named ``.json``, or text that
begins like an object, readable or not. ``id list``: lines of text, a tab and a number. ``word
list``: text with a line ``<S>`` or ``</S>`` in its first 64 kB."""

MAX_FILES, MAX_DEPTH = 2_000, 4
"""Bounds of a folder that is said to be a model."""
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_LEGACY_TORCH_MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
"""A pickle of the number with which the older format of ``torch.save`` begins."""
_HEAD_BYTES = 1 << 16
_ID_LINE = re.compile(r"[^\t\n]*\t\d{1,9}\r?\n")
_BOUNDARIES = re.compile(
    rf"^\s*({re.escape(SENTENCE_BEGIN_WORD)}|{re.escape(SENTENCE_END_WORD)})\s*$", re.MULTILINE
)


@dataclass(frozen=True, kw_only=True)
class ImportedModel:
    """A model of other software; trained mixtures of its layers are its ``mixes``."""

    model: StoredBiLM
    origin: str
    """The files that it was read from."""
    notes: tuple[str, ...] = ()
    """What was assumed or left out, a sentence each."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    options: Path | None = None
    weights: Path | None = None
    vocab: Path | None = None
    softmax: Path | None = None
    name: str | None = None
    """Which of several models."""
    encoder_only: bool = False
    """Leave softmax and vocabulary out."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    folder: Path
    kinds: dict[Path, ModelFileKind]
    choices: Choices = field(default_factory=Choices)

    def of(self, *kinds: ModelFileKind) -> list[Path]:
        return sorted(path for path, kind in self.kinds.items() if kind in kinds)

    def given(self, option: str) -> Path | None:
        """Return the file that an option names, in the folder or by its path."""
        name = getattr(self.choices, option)
        if name is None:
            return None
        for path in (self.folder / name, name):
            if path.exists():
                return path
        raise FileNotFoundError(
            f"There is no file {name}, nor one of this name in {self.folder} (--{option})."
        )

    def find(self, option: str, paths: list[Path]) -> Path | None:
        """Return the file that an option names, or the only one of some; None if there is none."""
        if (path := self.given(option)) is not None:
            return path
        if len(paths) > 1:
            raise FormatError(
                f"{self.folder} has {len(paths)} files that can be the {option}: "
                f"{self.listed(paths)}. Choose one with --{option}."
            )
        return paths[0] if paths else None

    def need(self, option: str, kind: ModelFileKind) -> Path:
        """Return the file that an option names, or the only one of a kind."""
        path = self.find(option, self.of(kind))
        if path is None:
            raise FormatError(
                f"{self.folder} has no file of the {option} ({kind}). It holds {self.summary()}. "
                f"If it is elsewhere, give it with --{option}."
            )
        return path

    def all_settings(self) -> dict[Path, dict[str, Any]]:
        """Return the tables of all JSON files; one that cannot be read is refused."""
        return {path: settings(path) for path in self.of("JSON")}

    def vocabulary(self) -> Path | None:
        """Return the vocabulary that was given, ``vocab.txt``, or the only word list, if any.

        The file may be compressed. If only the encoder is wanted, it has to be given.
        """
        usual = [path for path in self.kinds if path.name.startswith("vocab.txt")]
        lists = usual if len(usual) == 1 else self.of("word list")
        return self.find("vocab", [] if self.choices.encoder_only else lists)

    def listed(self, paths: Iterable[Path]) -> str:
        """Return paths as they are seen from the folder, for a message."""
        names = [os.path.relpath(path, self.folder) for path in paths]
        return ", ".join([*names[:8], *(["…"] if len(names) > 8 else [])])

    def summary(self) -> str:
        groups = ((kind, self.of(kind)) for kind in get_args(ModelFileKind))
        lines = [f"{kind}: {self.listed(paths)}" for kind, paths in groups if paths]
        return "; ".join(lines) or "no files"


def settings(path: Path) -> dict[str, Any]:
    advice = "Mend it or fetch it again; if it is not part of the model, move it elsewhere."
    return parse_json(read_whole(path, MAX_SETTINGS_BYTES), source=path, advice=advice)


@contextmanager
def open_contents(source: Path, choices: Choices, *, scratch: Path) -> Iterator[Contents]:
    """Find out what the files of a folder, or of an archive, are.

    A file stands for its folder, without the folders in it; an archive is unpacked in ``scratch``
    for the time.
    """
    if source.is_dir():
        yield Contents(folder=source, kinds=_kinds(source, MAX_DEPTH), choices=choices)
        return
    if (
        kind_of(source) != "archive"
    ):  # only what is beside it: folders of downloads hold many things
        yield Contents(folder=source.parent, kinds=_kinds(source.parent, 0), choices=choices)
        return
    scratch.mkdir(parents=True, exist_ok=True)
    with temporary_directory(scratch, "unpacked") as folder:
        unpack(source, folder)
        try:
            yield Contents(folder=folder, kinds=_kinds(folder, MAX_DEPTH), choices=choices)
        except (FormatError, InputError, ConfigError, FileNotFoundError) as error:
            # the user knows the archive, not the folder that it was unpacked to
            raise type(error)(str(error).replace(str(folder), str(source))) from error


def _kinds(folder: Path, max_depth: int) -> dict[Path, ModelFileKind]:
    return {path: kind_of(path) for path in files_below(folder, max_depth)}


def files_below(folder: Path, max_depth: int) -> list[Path]:
    """List the files of a folder and its folders, without hidden ones and linked folders."""
    paths: list[Path] = []
    for at, folders, names in os.walk(folder):
        depth = len(Path(at).relative_to(folder).parts)
        folders[:] = [
            name for name in folders
            if depth < max_depth and not name.startswith(".") and name != "__MACOSX"
        ]  # fmt: skip
        files = (Path(at, name) for name in names if not name.startswith("."))
        paths += (path for path in files if path.is_file())
        if len(paths) > MAX_FILES:
            raise InputError(
                f"{folder} has more than {MAX_FILES:,} files. Give the folder of one model."
            )
    return sorted(paths)


def kind_of(path: Path) -> ModelFileKind:
    """Return the kind of a file by its contents; of compressed text, by those of the text."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        file.seek(max(0, path.stat().st_size - len(TABLE_MAGIC)))
        tail = file.read()
    if head.startswith(_HDF5_MAGIC):
        return "HDF5"
    if tail == TABLE_MAGIC:
        return "TensorFlow index"
    # the name of a zip's first record, which a truncated archive has, too
    first_name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    is_zip = head.startswith(b"PK\x03\x04")
    if head.startswith(_LEGACY_TORCH_MAGIC) or (is_zip and first_name.endswith(b"/data.pkl")):
        return "PyTorch"
    if path.suffix.lower() in COMPRESSIONS:
        with suppress(FormatError, MissingExtraError):  # no text, or left to its reader
            if (kind := _text_kind(path, next(read_pieces(path), b""))) != "other":
                return kind
    return "archive" if archive_kind(path) is not None else _text_kind(path, head)


def _text_kind(path: Path, head: bytes) -> ModelFileKind:
    # in any encoding: what is not UTF-8 is refused by its reader, not passed over
    text = head.decode(json.detect_encoding(head), "replace")
    if "\0" in text:
        return "other"
    line, _, others = text.lstrip().partition("\n")
    if line.startswith("{") or path.suffix.lower() == ".json":
        is_records = line.startswith("[") or (is_json(line, dict) and others.strip())
        try:
            return "options" if isinstance(settings(path).get("lstm"), dict) else "JSON"
        except FormatError:
            return "other" if is_records else "JSON"
    if _ID_LINE.match(text):
        return "id list"
    return "word list" if _BOUNDARIES.search(text) else "other"
