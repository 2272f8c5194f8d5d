"""Finding corpus files and reading their decompressed bytes in pieces."""

import bz2
import glob
import gzip
import lzma
import os
import select
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, NoReturn

from elmokit.errors import FormatError, InputError, MissingExtraError
from elmokit.files.damage import refuse_lfs_pointer
from elmokit.files.hashing import file_sha256
from elmokit.files.remote import AnyFile, RemoteFile, as_file

FileKind = Literal["text", "jsonl", "parquet", "archive"]
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

STANDARD_INPUT = Path("-")
_PIECE_BYTES = 1 << 18
_ZST_INPUT_BYTES = 1 << 10  # zstd input may grow 30,000-fold
_DECOMPRESSORS = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
COMPRESSIONS = (*_DECOMPRESSORS, ".zst")
_TAR_SUFFIXES = {".tgz": ".gz", ".tbz2": ".bz2", ".txz": ".xz", ".tzst": ".zst"}
_ARCHIVE_DAMAGE = (tarfile.TarError, zipfile.BadZipFile)  # in the middle of a member
_JSONL_SUFFIXES = (".jsonl", ".ndjson")
_MAGIC_BYTES = {
    b"\x1f\x8b": "gzip data (name it .gz)",
    b"\xfd7zXZ\x00": "xz data (name it .xz)",
    b"BZh91AY&SY": "bzip2 data (name it .bz2)",
    b"\x28\xb5\x2f\xfd": "zstandard data (name it .zst)",
    b"PAR1\x15": "a Parquet file (name it .parquet)",
    b"PK\x03\x04": "a zip archive (name it .zip) or an office document (extract its text first)",
    b"ELMOKSH1": "a shard of elmokit (give `pretrain` its folder alone, others the raw text)",
    b"\x89HDF\r\n": "an HDF5 file, such as vectors or weights",
    b"%PDF": "a PDF document (extract its text first)",
    b"\xff\xfe": "UTF-16 text (convert it: iconv -f UTF-16 -t UTF-8 IN > OUT)",
    b"\xfe\xff": "UTF-16 text (convert it: iconv -f UTF-16 -t UTF-8 IN > OUT)",
}


def find_files(
    paths: Paths, *, missing_ok: bool = False, exclude: Sequence[Path] = ()
) -> list[AnyFile]:
    """Return the files that paths from the command line stand for, in the order given.

    Args:
        paths: One or several of: files, directories (all files below, sorted, without hidden ones),
            glob patterns (sorted), addresses (``s3://…``) of the same, ``-`` for standard input.
        missing_ok: Return an empty list, rather than raise, if anything is missing.
        exclude: Files and directories, such as the output of the command, to leave out, unless
            given by name themselves.

    Raises:
        FileNotFoundError: if a path does not exist, is an empty directory or matches nothing.
        InputError: if a path is empty.
    """
    files: list[AnyFile] = []
    places = [place.resolve() for place in exclude]
    for given in [paths] if isinstance(paths, str | os.PathLike) else paths:
        if os.fspath(given) == "":
            raise InputError("A path is empty. Give . for the working directory.")
        path = as_file(given)
        if isinstance(path, RemoteFile):
            found = path.found()
        elif path != STANDARD_INPUT and path.is_dir():
            found = _files_below(path)
        elif path == STANDARD_INPUT or path.exists():  # or a pipe, as from process substitution
            found = [path]
        else:
            matches = map(Path, glob.glob(os.fspath(given), recursive=True))
            parts = (_files_below(one) if one.is_dir() else [one] for one in matches)
            found = _each_once(file for part in parts for file in part if file.is_file())
        if places and found != [path]:
            found = [file for file in found if not _is_in(places, file)]
        if not found and missing_ok:
            return []
        if not found:
            raise FileNotFoundError(
                f"no corpus file at {os.fspath(given)!r}. Give a file, a directory with files, a "
                f"pattern such as 'texts/*.txt.gz', or - for standard input."
            )
        files += found
    if not files:
        raise FileNotFoundError("no corpus was given. Give files, directories or patterns.")
    return files


def _is_in(places: Sequence[Path], file: AnyFile) -> bool:
    if not isinstance(file, Path):
        return False
    resolved = file.resolve()
    return any(resolved.is_relative_to(place) for place in places)


def is_read_once(file: AnyFile) -> bool:
    """Tell whether what is read is no regular file but standard input or a pipe."""
    return file == STANDARD_INPUT or not file.is_file()


def existing_file(path: str | os.PathLike[str], *, what: str, is_read_twice: bool = False) -> Path:
    """Return the path of one file; ``what`` it holds is for error messages.

    Raises:
        FileNotFoundError: if there is no such file.
        IsADirectoryError: if it is a directory.
        InputError: for standard input or a pipe, if it ``is_read_twice``.
    """
    found = Path(path)
    is_stream = found == STANDARD_INPUT or (
        found.exists() and not found.is_dir() and not found.is_file()
    )
    if is_stream and is_read_twice:
        raise InputError(
            f"{found}: {what} must be read twice, so standard input or a pipe will not do. Give "
            "a regular file."
        )
    if found.is_dir():
        raise IsADirectoryError(f"{found} is a directory. Give a file of {what}.")
    if not is_stream and not found.is_file():
        raise FileNotFoundError(
            f"There is no file of {what} {found}. Give one, plain or compressed "
            f"({', '.join(COMPRESSIONS)})."
        )
    return found


def describe_files(files: Sequence[AnyFile]) -> list[dict[str, Any]]:
    """Return path, size and SHA-256 of every file; for standard input and pipes, the path alone."""
    return [
        {"path": str(path), "num_bytes": file_size(path), "sha256": file_sha256(path)}
        if path.is_file()
        else {"path": str(path), "num_bytes": None, "sha256": None}
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


def file_kind(path: AnyFile) -> FileKind:
    """Return the kind of a file by its suffix; unknown suffixes mean plain text."""
    name = path.name.lower()
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    if name.endswith(_JSONL_SUFFIXES):
        return "jsonl"
    if name.endswith((".tar", ".zip", *_TAR_SUFFIXES)):
        return "archive"
    return "parquet" if path.name.lower().endswith(".parquet") else "text"


def read_pieces(path: AnyFile) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in pieces of bounded size.

    Raises:
        FormatError: if compressed data is damaged or truncated, or if the suffix of a compressed or
            binary file is missing.
        MissingExtraError: for .zst without the package zstandard.
    """
    suffix = _TAR_SUFFIXES.get(path.suffix.lower(), path.suffix.lower())
    num_bytes = 0
    try:
        for piece in _zst_pieces(path) if suffix == ".zst" else _pieces(path, suffix):
            if num_bytes == 0 and file_kind(path) != "archive":
                check_magic(path, piece)
            num_bytes += len(piece)
            yield piece
        if num_bytes == 0 and suffix in (".gz", ".zst") and file_size(path) == 0:
            raise EOFError("the file is empty")  # which these two decompressors take for no text
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, *_ARCHIVE_DAMAGE) as error:
        raise _damaged(path, num_bytes, str(error)) from error
    except OSError as error:
        if suffix != ".bz2" or error.errno is not None:  # bz2 has no error class of its own
            raise
        raise _damaged(path, num_bytes, str(error)) from error


def _pieces(path: AnyFile, suffix: str) -> Iterator[bytes]:
    with ExitStack() as stack:
        file = _opened(path, stack)
        if decompress := _DECOMPRESSORS.get(suffix):
            file = stack.enter_context(decompress(file, "rb"))
        while (piece := file.read(_PIECE_BYTES)) != b"":
            if piece is None:  # standard input that does not block has nothing yet
                select.select([file], [], [])
            else:
                yield piece


def _opened(path: AnyFile, stack: ExitStack) -> Any:
    if path == STANDARD_INPUT:
        # unbuffered: a thread waiting for a buffer's lock would keep Python from exiting
        return getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    return stack.enter_context(path.open("rb"))


def _zst_pieces(path: AnyFile) -> Iterator[bytes]:
    """Decompress frame by frame: unlike zstandard's file reader, this notices a truncated file."""
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("zstandard", extra="zst") from error
    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 31)
    frame = None
    try:
        with path.open("rb") as file:
            while data := file.read(_ZST_INPUT_BYTES):
                while data:
                    frame = frame or decompressor.decompressobj()
                    if piece := frame.decompress(data):
                        yield piece
                    data = frame.unused_data if frame.eof else b""
                    frame = None if frame.eof else frame
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from error
    if frame is not None:
        raise EOFError("the last frame is not complete")


def _damaged(path: AnyFile, num_bytes: int, reason: str) -> FormatError:
    if path != STANDARD_INPUT:
        refuse_lfs_pointer(path)
    return FormatError(
        f"{path}: damaged or truncated {path.suffix} file: readable up to byte {num_bytes} of its "
        f"decompressed text, then: {reason}. Copy or compress the file again."
    )


def check_magic(path: AnyFile, piece: bytes) -> None:
    """Refuse what begins like a file that is no plain text; `FormatError` says what it is."""
    if piece[257:262] == b"ustar":
        raise FormatError(f"{path}: expected UTF-8 text, but it is a tar archive (name it .tar).")
    refuse_lfs_pointer(path, piece)
    for magic, meaning in _MAGIC_BYTES.items():
        if piece.startswith(magic):
            raise FormatError(f"{path}: expected UTF-8 text, but it begins like {meaning}.")


def _files_below(directory: Path) -> list[Path]:
    """Return the files below a directory, sorted, without hidden ones.

    Links to folders are followed after all others, and of a file and links to it the file is taken,
    so that no file is read twice and its path does not depend on the file system.

    Raises:
        OSError: for a folder that cannot be listed.
    """
    found, seen, waiting = [], set(), [directory]
    while waiting:
        links = []
        walked = (entry for start in waiting for entry in os.walk(start, onerror=_refuse))
        for folder, folders, names in walked:
            real = os.path.realpath(folder)
            if real in seen:
                folders.clear()
                continue
            seen.add(real)
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            links += [path for name in folders if (path := Path(folder, name)).is_symlink()]
            found += [Path(folder, name) for name in names if not name.startswith(".")]
        waiting = sorted(links)
    return _each_once(path for path in found if path.is_file())


def _refuse(error: OSError) -> NoReturn:
    raise error


def _each_once(files: Iterable[Path]) -> list[Path]:
    """Return the files, sorted; of a file and links to it the file."""
    links_first = sorted(files, key=lambda path: (path.is_symlink(), path), reverse=True)
    return sorted({os.path.realpath(path): path for path in links_first}.values())
