"""Zip and tar archives from anywhere, unpacked.

Nothing that an archive states is believed before it is counted: neither names that lead out of the
folder nor sizes. Links and devices are refused.
"""

import shutil
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


def unpack(archive: Path, folder: Path, *, archive_bytes: int | None = None) -> None:
    """Unpack all files of a zip or tar archive into an empty folder.

    ``archive_bytes`` limits the size of the files, if the archive was in another.
    """
    size = archive.stat().st_size
    limit = max(SMALL_BYTES, MAX_GROWTH * (size if archive_bytes is None else archive_bytes))
    advice = (
        f"It has {size:,} bytes, and its files may have {limit:,}. Fetch it again, join its parts, "
        "or, if you trust it, unpack it yourself and give the folder."
    )
    with damage(archive, advice, what="not unpacked"):
        num_bytes = 0
        is_zip = archive_kind(archive) == "zip"
        members = _zip_members(archive) if is_zip else _tar_members(archive, 2 * limit)
        for number, (name, stated_bytes, stream) in enumerate(members, 1):
            target, num_bytes = (folder / name).resolve(), num_bytes + stated_bytes
            if stream is None or not target.is_relative_to(folder.resolve()):
                raise ValueError(
                    f"{name[:200]!r} is a link or a device, or leads out of the folder"
                )
            if num_bytes > limit or number > MAX_MEMBERS:
                raise ValueError(f"more than {MAX_MEMBERS:,} files, or than {limit:,} bytes")
            # neither file may replace the other: which one counts would depend on the program
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as file:
                    shutil.copyfileobj(stream, file)
            except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
                raise ValueError(f"{name[:200]!r} is there twice, or a folder too") from error


def _zip_members(path: Path) -> Iterator[tuple[str, int, Any]]:
    """Yield name, size and content of every file; no more than the size is decompressed."""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if not entry.filename.endswith("/"):  # is_dir fails for a member without a name
                with archive.open(entry) as stream:
                    yield entry.filename, entry.file_size, stream


def _tar_members(path: Path, max_bytes: int) -> Iterator[tuple[str, int, Any]]:
    """Yield name, size and content of every file; without content links and devices."""
    with path.open("rb") as file:
        compression = compression_of(file.read(10))
    stream = stream_of(_bounded(read_pieces(path, compression=compression), max_bytes))
    with tarfile.open(fileobj=stream, mode="r|") as archive:  # read forward only
        for entry in archive:
            if not entry.isdir():
                yield entry.name, entry.size, archive.extractfile(entry) if entry.isreg() else None
    while stream.read(1 << 18):  # to the checksum of a compressed archive
        pass


def _bounded(pieces: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    num_bytes = 0
    for piece in pieces:
        num_bytes += len(piece)
        if num_bytes > max_bytes:  # of headers, too, which `tarfile` keeps
            raise ValueError("it has too many bytes")
        yield piece
