"""Finding corpus files, hashing them, and reading their decompressed bytes; what damage is."""

import errno
import glob
import hashlib
import io
import os
import re
import select
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NoReturn

from elmokit.errors import ElmokitError, FormatError, InputError, MissingExtraError
from elmokit.files.remote import AnyFile, RemoteFile, as_file

_SYSTEM_ERRORS = {errno.EIO, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ESTALE}
"""These say nothing about the contents of a file."""


@contextmanager
def damage(path: object, advice: str, *, what: str = "damaged") -> Iterator[None]:
    """Turn any error of a library that reads ``path`` into `FormatError`; ``advice`` ends it.

    Keep the block to calls of the library: a bug inside it would be reported as a damaged file.
    Errors of elmokit, system errors (such as a disk that cannot be read), and lack of memory are
    passed on.
    """
    try:
        yield
    except (ElmokitError, MemoryError):
        raise
    except Exception as error:  # on damage, such libraries raise errors of nearly every class
        # h5py and others raise OSError for damage as well, but those have no errno or file name
        if isinstance(error, OSError):
            if error.filename is None and error.errno in _SYSTEM_ERRORS:
                error.filename = str(path)
            if error.filename is not None:
                raise
        reason = str(error).strip().removesuffix(".") or type(error).__name__
        raise FormatError(f"{path}: {what}: {reason}. {advice}") from error


def file_sha256(path: AnyFile) -> str:
    """Hash the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_sha256(text: str) -> str:
    """Hash a text in UTF-8, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check_file(path: Path, *, num_bytes: int, sha256: str, advice: str) -> None:
    """Check that a file has the recorded size and hash."""
    is_whole = path.is_file() and path.stat().st_size == num_bytes
    if not is_whole or file_sha256(path) != sha256:
        raise FormatError(
            f"{path}: damaged or missing: expected {num_bytes} bytes with sha256 {sha256}. {advice}"
        )


TextKind = Literal["text", "jsonl", "parquet"]
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

STANDARD_INPUT = Path("-")
_PIECE_BYTES = 1 << 18
_ZST_INPUT_BYTES = 1 << 10  # zstd input may grow 30,000-fold
_DECOMPRESSORS = {".gz": "gzip", ".xz": "lzma", ".bz2": "bz2"}
"""Modules of the standard library, imported when there is such a file."""
COMPRESSIONS = (*_DECOMPRESSORS, ".zst")
_TAR_SUFFIXES = (".tgz", ".tbz", ".tbz2", ".txz", ".tzst")
_KINDS: dict[str, TextKind] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_MAGIC = {
    ".gz": rb"\x1f\x8b",
    ".xz": rb"\xfd7zXZ\x00",
    ".bz2": rb"BZh[1-9](?:1AY&SY|\x17rE8P)",  # less might be a word
    ".zst": rb"\x28\xb5\x2f\xfd",
    ".parquet": rb"PAR1\x15",
    ".zip": rb"PK\x03\x04",
    ".tar": rb"(?s:.{257})ustar",
}
"""How files begin that are no text, by the suffix that they should have."""


def find_files(
    paths: Paths, *, missing_ok: bool = False, exclude: Sequence[Path] = ()
) -> list[AnyFile]:
    """Return the files that paths from the command line stand for, in the order given.

    ``paths`` are files, directories (all files below, sorted, without hidden ones), glob patterns
    (sorted), addresses (``s3://…``) of the same, ``-`` for standard input. ``exclude`` is left out
    unless given by name, such as the output of the command. With ``missing_ok`` the list is empty,
    rather than an error, if anything is missing.
    """
    files: list[AnyFile] = []
    for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        matches = _matches(path)
        if matches != [as_file(path)]:
            matches = [
                file
                for file in matches
                if not isinstance(file, Path)
                or not any(file.resolve().is_relative_to(place.resolve()) for place in exclude)
            ]
        if not matches and missing_ok:
            return []
        if not matches:
            raise FileNotFoundError(
                f"no file at {os.fspath(path)!r}. Give a file, a directory with files, a "
                "pattern such as 'texts/*.txt.gz', or - for standard input."
            )
        files += matches
    if not files:
        raise FileNotFoundError("no corpus was given. Give files, directories or patterns.")
    return files


def _matches(path: str | os.PathLike[str]) -> list[AnyFile]:
    if os.fspath(path) == "":  # would mean the working directory
        raise InputError("A path is empty. Give . for the working directory.")
    file = as_file(path)
    if isinstance(file, RemoteFile):
        return list(file.matches())
    if file == STANDARD_INPUT or (file.exists() and not file.is_dir()):  # also a pipe
        return [file]
    places = [file] if file.is_dir() else map(Path, glob.glob(os.fspath(path), recursive=True))
    return [*sorted({*chain.from_iterable(map(_files_below, places))})]


def _files_below(place: Path) -> Iterator[Path]:
    """Yield a file, or the visible ones below a directory, each folder once."""
    if not place.is_dir():
        yield from [place] * place.is_file()
        return
    seen = set()
    for folder, folders, names in os.walk(place, onerror=_refuse, followlinks=True):
        real = os.path.realpath(folder)
        # in order, so that the same folder gives the same paths
        folders[:] = sorted(name for name in folders if real not in seen and name[0] != ".")
        if real not in seen:
            files = (Path(folder, name) for name in names if name[0] != ".")
            yield from filter(Path.is_file, files)
        seen.add(real)


def _refuse(error: OSError) -> NoReturn:
    raise error  # a folder that cannot be listed is no empty one


def is_read_once(file: AnyFile) -> bool:
    """Tell whether what is read is no regular file but standard input or a pipe."""
    return file == STANDARD_INPUT or not file.is_file()


def existing_file(path: str | os.PathLike[str], *, what: str, is_read_twice: bool = False) -> Path:
    """Return the path of one file; ``what`` it holds is for error messages."""
    file = Path(path)
    if file != STANDARD_INPUT:
        file.stat()  # raises an error that names a file which is not there
    if is_read_twice and is_read_once(file):
        raise InputError(f"{file}: {what} must be read twice: give a regular file, no pipe.")
    return file


def describe_files(files: Sequence[AnyFile]) -> list[dict[str, Any]]:
    """Return path, size and SHA-256 of every file; for standard input and pipes, the path alone."""
    return [
        {"path": str(path), "num_bytes": None, "sha256": None}
        if is_read_once(path)
        else {"path": str(path), "num_bytes": file_size(path), "sha256": file_sha256(path)}
        for path in files
    ]


def file_size(path: AnyFile) -> int | None:
    """Return the size of a file in bytes; None if a server does not tell."""
    return path.num_bytes if isinstance(path, RemoteFile) else path.stat().st_size


def plain_suffix(path: AnyFile) -> str:
    """Return the suffix of a file in lower case, without that of a compression."""
    name = path.name.lower()
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    return Path(name).suffix


def file_kind(path: AnyFile) -> TextKind:
    """Return the kind of a file by its suffix; unknown suffixes mean plain text."""
    return _KINDS.get(plain_suffix(path), "text")


def compression_of(head: bytes) -> str:
    """Return the one of `COMPRESSIONS` that a file which begins so has, or nothing."""
    suffixes = (suffix for suffix in COMPRESSIONS if re.match(_MAGIC[suffix], head))
    return next(suffixes, "")


def read_pieces(path: AnyFile, *, compression: str | None = None) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in pieces of bounded size.

    ``compression`` is one of `COMPRESSIONS`, or empty; None: as the name says.
    """
    suffix = path.suffix.lower() if compression is None else compression
    is_first, advice, what = True, "Try again.", "not read"
    if suffix in COMPRESSIONS:
        advice, what = "Copy or compress the file again.", f"damaged or truncated {suffix} file"
    with damage(path, advice, what=what):
        for piece in _zst_pieces(path) if suffix == ".zst" else _pieces(path, suffix):
            if is_first and compression is None:
                _check_is_text(path, piece)
            is_first = False
            yield piece
        if is_first and suffix in (".gz", ".zst") and file_size(path) == 0:
            raise EOFError("the file is empty")  # which these two decompressors take for no text


def open_stream(path: AnyFile) -> io.BufferedReader:
    """Open the decompressed bytes of `read_pieces` as a file that is read forward."""
    return stream_of(read_pieces(path))


def stream_of(pieces: Iterator[bytes]) -> io.BufferedReader:
    """Return pieces of bytes as a file that is read forward."""
    return io.BufferedReader(_Stream(pieces), _PIECE_BYTES)


class _Stream(io.RawIOBase):
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        size = 0
        # until the buffer is full: `peek` then shows as much as there is
        while size < len(buffer):
            if not self._rest:
                if (piece := next(self._pieces, None)) is None:
                    break
                self._rest = memoryview(piece)
            step = min(len(buffer) - size, len(self._rest))
            buffer[size : size + step] = self._rest[:step]
            self._rest, size = self._rest[step:], size + step
        return size


def _pieces(path: AnyFile, suffix: str) -> Iterator[bytes]:
    with ExitStack() as stack:
        if path == STANDARD_INPUT:
            # unbuffered: a thread waiting for a buffer's lock would keep Python from exiting
            file: Any = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        else:
            file = stack.enter_context(path.open("rb"))
        if module := _DECOMPRESSORS.get(suffix):
            file = stack.enter_context(import_module(module).open(file, "rb"))
        while (piece := file.read(_PIECE_BYTES)) != b"":
            if piece is None:  # standard input that does not block has nothing yet
                select.select([file], [], [])
            else:
                yield piece


def _zst_pieces(path: AnyFile) -> Iterator[bytes]:
    """Decompress frame by frame: unlike zstandard's file reader, this notices a truncated file."""
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("zstandard", extra="zst") from error
    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 31)
    frame = None
    with path.open("rb") as file:
        while rest := file.read(_ZST_INPUT_BYTES):
            while rest:
                frame = frame or decompressor.decompressobj()
                if piece := frame.decompress(rest):
                    yield piece
                rest = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("the last frame is not complete")


def _check_is_text(path: AnyFile, piece: bytes) -> None:
    for suffix, magic in _MAGIC.items():
        if re.match(magic, piece):
            is_archive = suffix in (".zip", ".tar") or path.suffix.lower() in _TAR_SUFFIXES
            advice = "Unpack it." if is_archive else f"Name it {suffix}."
            raise FormatError(f"{path}: not text, but what a {suffix} file holds. {advice}")
