"""The files of a model, told apart by what is in them: names in the wild mean little."""

import codecs
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from elmokit.errors import ConfigError, FormatError, InputError, MissingExtraError
from elmokit.files.archives import archive_kind, unpack
from elmokit.files.bounded import MAX_SETTINGS_BYTES
from elmokit.files.damage import refuse_lfs_pointer
from elmokit.files.json_files import is_json, parse_json
from elmokit.files.lines import read_whole
from elmokit.files.sources import COMPRESSIONS, read_pieces
from elmokit.files.temporary import temporary_directory
from elmokit.text.char_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD
from elmokit.weights.readers.tensor_bundle import TABLE_MAGIC

FileKind = Literal[
    "HDF5", "TensorFlow index", "PyTorch", "options", "JSON", "unreadable JSON", "id list",
    "word list", "archive", "Git LFS pointer", "other",
]  # fmt: skip
"""``options``: JSON with the table ``lstm``. ``unreadable JSON``: a file named
``.json``, or text that begins like an object, that cannot be read as one. ``id list``: lines of
text, a tab and a number. ``word list``: text with a line ``<S>`` or ``</S>`` in its first 64 kB."""

MAX_FILES, MAX_DEPTH = 2_000, 4
"""Bounds of a folder that is said to be a model."""
MAX_NESTED = 2
"""Archives inside each other that are unpacked."""
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_LEGACY_TORCH_MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
"""A pickle of the number with which the older format of ``torch.save`` begins."""
_HEAD_BYTES = 1 << 16
_ID_LINE = re.compile(r"[^\t\n]*\t\d{1,9}\r?\n")
_BOUNDARIES = re.compile(
    rf"^\s*({re.escape(SENTENCE_BEGIN_WORD)}|{re.escape(SENTENCE_END_WORD)})\s*$", re.MULTILINE
)


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the user says about a source beyond its path."""

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
    """A folder and the kinds of its files."""

    folder: Path
    kinds: dict[Path, FileKind]
    choices: Choices = field(default_factory=Choices)

    def of(self, *kinds: FileKind) -> list[Path]:
        """Return the files of some kinds, sorted by path."""
        return sorted(path for path, kind in self.kinds.items() if kind in kinds)

    def only(self, kind: FileKind, what: str, option: Literal["options", "weights"]) -> Path:
        """Return the file that was chosen by an option, or the only one of a kind."""
        if (path := getattr(self.choices, option)) is not None:
            return self.given(path, option)
        paths = self.of(kind)
        if len(paths) == 1:
            return paths[0]
        if not paths:
            self.refuse_pointers()
            if kind == "options":
                self.refuse_unreadable()
        raise FormatError(
            f"{self.folder} has {len(paths) or 'no'} files of {what}; one was expected. It holds "
            f"{self.summary()}. Say which is meant with --{option}."
        )

    def refuse_pointers(self) -> None:
        """Raise the error of a file that Git LFS has not fetched; it may be the one missing."""
        for path in self.of("Git LFS pointer"):
            refuse_lfs_pointer(path)

    def refuse_unreadable(self, *names: str) -> None:
        """Raise the error of a JSON file that cannot be read; it may be the one that is missing.

        With ``names``, only of a file of one of these names.
        """
        for path in self.of("unreadable JSON", "Git LFS pointer"):
            if not names or path.name in names:
                settings(path)

    def given(self, chosen: Path, option: str) -> Path:
        """Return the path of a file that was given by name or by path."""
        for path in (self.folder / chosen, chosen):
            if path.exists():
                return path
        raise FileNotFoundError(
            f"There is no file {chosen}, nor one of this name in {self.folder} (--{option})."
        )

    def vocabulary(self) -> Path | None:
        """Return the vocabulary that was given, ``vocab.txt``, or the only word list, if any.

        The file may be compressed. If only the encoder is wanted, it has to be given.
        """
        if self.choices.vocab is not None:
            return self.given(self.choices.vocab, "vocab")
        if self.choices.encoder_only:
            return None
        names = [f"vocab.txt{suffix}" for suffix in ("", *COMPRESSIONS)]
        usual = [path for path in self.kinds if path.name in names]
        paths = usual if len(usual) == 1 else self.of("word list")
        if len(paths) > 1:
            raise FormatError(
                f"{self.folder} has several vocabularies: {self.listed(paths)}. Choose one with "
                "--vocab."
            )
        return paths[0] if paths else None

    def relative(self, path: Path) -> str:
        """Return a path as it is seen from the folder."""
        is_inside = path.is_relative_to(self.folder)
        return path.relative_to(self.folder).as_posix() if is_inside else str(path)

    def listed(self, paths: Iterable[Path]) -> str:
        """Return paths for a message."""
        names = [self.relative(path) for path in paths]
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        return ", ".join(names[:8]) + more

    def summary(self) -> str:
        """Return what there is, for messages."""
        if not self.kinds:
            return "no files"
        groups = ((kind, self.of(kind)) for kind in get_args(FileKind))
        return "; ".join(f"{kind}: {self.listed(paths)}" for kind, paths in groups if paths)


def settings(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    advice = "Mend it or fetch it again; if it is not part of the model, move it elsewhere."
    return parse_json(read_whole(path, MAX_SETTINGS_BYTES), source=path, advice=advice)


@contextmanager
def open_contents(source: Path, choices: Choices, *, scratch: Path) -> Iterator[Contents]:
    """Find out what the files of a folder, or of an archive, are.

    Args:
        source: A folder, a zip or tar archive, or a file in a folder, which then is the source.
        choices: Kept in the result.
        scratch: Folder on a disk with room, where archives are unpacked for the time.
    """
    with _unpacked(source, scratch, MAX_NESTED) as (folder, kinds):
        try:
            yield Contents(folder=folder, kinds=kinds, choices=choices)
        except (FormatError, InputError, ConfigError, FileNotFoundError) as error:
            if isinstance(error, FormatError) and _is_text(source):
                raise FormatError(
                    f"{source} is a text file, not a model. Give a file with weights, an archive, "
                    "or the directory of a model."
                ) from error
            if folder in (source, source.parent) or error.args[1:]:
                raise
            # the user knows the archive, not the folder that it was unpacked to
            raise type(error)(str(error).replace(str(folder), str(source))) from error


@contextmanager
def _unpacked(
    source: Path, scratch: Path, depth: int, archive_bytes: int | None = None
) -> Iterator[tuple[Path, dict[Path, FileKind]]]:
    """Yield the folder of a source, or of what its archives hold, and the kinds of its files."""
    if source.is_dir():
        kinds = _kinds(source, MAX_DEPTH)
        inner = [path for path, kind in kinds.items() if kind == "archive"]
        others = [path for path, kind in kinds.items() if kind not in ("archive", "other")]
        if len(inner) != 1 or others or depth == 0:
            yield source, kinds
            return
        source = inner[0]
    elif kind_of(source) != "archive":
        # only what is beside it: folders of downloads hold many things
        yield source.parent, _kinds(source.parent, 0)
        return
    scratch.mkdir(parents=True, exist_ok=True)
    archive_bytes = archive_bytes or source.stat().st_size  # of the outermost archive
    with temporary_directory(scratch, "unpacked") as folder:
        unpack(source, folder, archive_bytes=archive_bytes)
        with _unpacked(folder, scratch, depth - 1, archive_bytes) as unpacked:
            yield unpacked


def _kinds(folder: Path, max_depth: int) -> dict[Path, FileKind]:
    kinds: dict[Path, FileKind] = {}
    for path in files_below(folder, max_depth):
        try:
            kinds[path] = kind_of(path)
        except FormatError:  # whoever needs the file refuses it
            kinds[path] = "Git LFS pointer"
    return kinds


def files_below(folder: Path, max_depth: int) -> list[Path]:
    """List the files of a folder and its folders, without hidden ones and linked folders."""
    paths: list[Path] = []
    folders = [(folder, 0)]
    while folders:
        here, depth = folders.pop()
        for path in sorted(here.iterdir()):
            if path.name.startswith(".") or path.name == "__MACOSX":
                continue
            if path.is_dir():
                if not path.is_symlink() and depth < max_depth:
                    folders.append((path, depth + 1))
            elif path.is_file():
                paths.append(path)
        if len(paths) > MAX_FILES:
            raise InputError(
                f"{folder} has more than {MAX_FILES:,} files. Give the folder of one model."
            )
    return paths


def kind_of(path: Path) -> FileKind:
    """Return the kind of a file by its contents; of compressed text, by those of the text."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        file.seek(max(0, path.stat().st_size - len(TABLE_MAGIC)))
        tail = file.read()
    if head.startswith(_HDF5_MAGIC):
        return "HDF5"
    if tail == TABLE_MAGIC:
        return "TensorFlow index"
    if _is_torch_file(path, head):
        return "PyTorch"
    refuse_lfs_pointer(path, head)
    if path.suffix.lower() in COMPRESSIONS and (kind := _compressed_kind(path)) != "other":
        return kind
    if archive_kind(path) is not None:
        return "archive"
    return _text_kind(path, head)


def _is_torch_file(path: Path, head: bytes) -> bool:
    """Tell whether a file was written by ``torch.save``, in its present or older format."""
    if head.startswith(_LEGACY_TORCH_MAGIC):
        return True
    if not head.startswith(b"PK\x03\x04"):
        return False
    # the name of the first record, which a truncated archive has, too
    if head[30 : 30 + int.from_bytes(head[26:28], "little")].endswith(b"/data.pkl"):
        return True
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("/data.pkl") for name in archive.namelist())
    except Exception:  # a damaged archive raises nearly anything, and is no file of tensors
        return False


def _is_text(path: Path) -> bool:
    """Tell whether a path is a file of UTF-8 text, and no part of a model that is known."""
    if not path.is_file() or kind_of(path) != "other":
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def _compressed_kind(path: Path) -> FileKind:
    try:
        return _text_kind(path, next(read_pieces(path), b""))
    except (FormatError, MissingExtraError):  # no text, or left to its reader
        return "other"


def _text_kind(path: Path, head: bytes) -> FileKind:
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
            return "other" if is_records else "unreadable JSON"
    if _ID_LINE.match(text):
        return "id list"
    return "word list" if _BOUNDARIES.search(text) else "other"
