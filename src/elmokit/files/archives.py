"""Zip and tar archives from anywhere, unpacked.

Nothing that an archive states is believed before it is counted. No file is written outside of the
folder; links and devices are refused.
"""

import itertools
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from elmokit.files.sources import compression_of, damage, read_pieces, stream_of

MAX_MEMBERS = 10_000
"""Files of an archive that is unpacked."""
MAX_GROWTH, SMALL_BYTES = 4, 1 << 26
"""Weights hardly shrink: all files together may have this many times the size of the archive, and
in any case 64 MB."""

ArchiveKind = Literal["zip", "tar"]


def archive_kind(path: Path) -> ArchiveKind | None:
    """Return what kind of archive a file is by its first bytes; None: neither zip nor tar.

    Any compressed file counts as a tar archive.
    """
    with path.open("rb") as file:
        head = file.read(512)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    return "tar" if compression_of(head) or head[257:262] == b"ustar" else None


def unpack(archive: Path, folder: Path) -> None:
    """Unpack all files of a zip or tar archive into an empty folder."""
    size = archive.stat().st_size
    limit = max(SMALL_BYTES, MAX_GROWTH * size)
    advice = (
        f"It has {size:,} bytes, and its files may have {limit:,}. Fetch it again, join its parts, "
        "or, if you trust it, unpack it yourself and give the folder."
    )
    with damage(archive, advice, what="not unpacked"):
        unpack_files = _unpack_zip if archive_kind(archive) == "zip" else _unpack_tar
        try:
            unpack_files(archive, folder, limit)
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise ValueError("a file in it has the name of a folder, or of another file") from error


def _unpack_zip(path: Path, folder: Path, limit: int) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        # no more than the stated sizes is decompressed
        if len(entries) > MAX_MEMBERS or sum(entry.file_size for entry in entries) > limit:
            raise ValueError(f"more than {MAX_MEMBERS:,} files, or than {limit:,} bytes")
        archive.extractall(folder)  # names that lead out are cut, links become files


def _unpack_tar(path: Path, folder: Path, limit: int) -> None:
    with path.open("rb") as file:
        compression = compression_of(file.read(10))
    stream = stream_of(_bounded(read_pieces(path, compression=compression), limit))
    numbers = itertools.count(1)

    def checked(entry: tarfile.TarInfo, folder: Any) -> tarfile.TarInfo:
        is_sparse = entry.sparse is not None  # larger than its part of the stream
        is_plain = (entry.isreg() or entry.isdir()) and not is_sparse
        if not is_plain or next(numbers) > MAX_MEMBERS:
            kind = "sparse" if is_sparse else "a link or a device"
            raise ValueError(
                f"{entry.name[:200]!r} is {kind}, or one of over {MAX_MEMBERS:,} files"
            )
        return tarfile.data_filter(entry, folder)  # refuses names that lead out

    with tarfile.open(fileobj=stream, mode="r|", errorlevel=2) as archive:  # read forward only
        archive.extractall(folder, filter=checked)
    while stream.read(1 << 18):  # to the checksum of a compressed archive
        pass


def _bounded(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    num_bytes = 0
    for piece in pieces:
        num_bytes += len(piece)
        if num_bytes > limit:  # of headers, too, which `tarfile` keeps
            raise ValueError(f"it has more than {limit:,} bytes")
        yield piece
