"""Zip and tar archives from anywhere: read as a corpus, or unpacked.

Nothing that an archive states is believed before it is counted: neither names that lead out of the
folder nor sizes, of which those of headers would be read into memory. Links and devices are not
followed.
"""

import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from elmokit.errors import FormatError
from elmokit.files.byte_stream import ByteStream
from elmokit.files.damage import damage
from elmokit.files.remote import AnyFile, RemoteFile
from elmokit.files.sources import COMPRESSION_MAGIC, file_kind

MAX_MEMBERS = 10_000
"""Files of an archive that is unpacked."""
MAX_GROWTH, SMALL_BYTES = 4, 1 << 26
"""Weights hardly shrink: all files together may have this many times the size of the archive, and
in any case 64 MB."""
_MAX_HEADER_BYTES = 1 << 18
"""Of one header of a tar archive, of which `tarfile` reads chains; also read at a time."""
_NO_LIMIT = 1 << 62

ArchiveKind = Literal["zip", "tar"]


def archive_kind(path: Path) -> ArchiveKind | None:
    """Return what kind of archive a file is by its first bytes; None: neither zip nor tar.

    Any file compressed by gzip, bzip2 or xz counts as a tar archive.
    """
    with path.open("rb") as file:
        head = file.read(512)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    return "tar" if _compression(head) or head[257:262] == b"ustar" else None


def unpack(archive: Path, folder: Path, *, archive_bytes: int | None = None) -> None:
    """Unpack all files of a zip or tar archive into an empty folder.

    Args:
        archive: The archive.
        folder: Where its files go.
        archive_bytes: By which the size of the files is limited, if the archive was in another.
    """
    size = archive.stat().st_size
    limit = max(SMALL_BYTES, MAX_GROWTH * (size if archive_bytes is None else archive_bytes))
    advice = (
        f"It has {size:,} bytes, and its files may have {limit:,}. Fetch it again, join its parts, "
        "or, if you trust it, unpack it yourself and give the folder."
    )
    with damage(archive, advice, what="not unpacked"):
        num_bytes = 0
        members = _members(archive, archive_kind(archive) or "tar", max_bytes=2 * limit)
        for number, (name, stated_bytes, stream) in enumerate(members, 1):
            target, num_bytes = (folder / name).resolve(), num_bytes + stated_bytes
            if not target.is_relative_to(folder.resolve()):
                raise ValueError(f"its member {name[:200]!r} leads out of the folder")
            if stream is None:
                raise ValueError(f"its member {name[:200]!r} is a link or a device")
            if num_bytes > limit or number > MAX_MEMBERS:
                raise ValueError(f"more than {MAX_MEMBERS:,} files, or than {limit:,} bytes")
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as file:
                    shutil.copyfileobj(stream, file)
            except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
                raise ValueError(f"{name[:200]!r} is there twice, or a folder too") from error


@dataclass(frozen=True)
class ArchiveMember(RemoteFile):
    """A file in an archive; its address is that of the archive and its path inside."""

    stream: Any

    @property
    def num_bytes(self) -> None:
        """Not known."""

    def open(self, mode: str = "rb") -> Any:
        """Return the stream, which is read once."""
        return self.stream


def members_of(path: AnyFile) -> Iterator[AnyFile]:
    """Yield the files of an archive in its order, without hidden ones; other files as they are.

    Each is to be read before the next one. Links and devices are left out, and nothing is unpacked
    to disk.
    """
    if file_kind(path) != "archive":
        yield path
        return
    advice = "Unpack it yourself, or fetch it again."
    kind = "zip" if path.suffix.lower() == ".zip" else "tar"
    with damage(path, advice, what="damaged or encrypted archive"):
        for name, _, stream in _members(path, kind):
            is_hidden = any(part[0] == "." for part in {*PurePosixPath(name).parts} - {".."})
            if stream is None or is_hidden:
                continue
            member = ArchiveMember(f"{path}/{name}", stream)
            if file_kind(member) in ("archive", "parquet"):
                raise FormatError(f"{member}: not read inside an archive. Unpack {path}.")
            yield member


def _members(
    path: AnyFile, kind: ArchiveKind, *, max_bytes: int = _NO_LIMIT
) -> Iterator[tuple[str, int, Any]]:
    """Yield name, size and content of every file; without content links and devices.

    ``max_bytes`` are decompressed of a tar archive. Of a zip archive no more than the sizes are.
    """
    if kind == "zip":
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if not entry.filename.endswith("/"):  # is_dir fails for a member without a name
                    with archive.open(entry) as stream:
                        yield entry.filename, entry.file_size, stream
        return
    forward: Any = _Forward(path, max_bytes)
    with tarfile.open(fileobj=forward, mode="r:") as opened:
        archive: Any = opened
        while (entry := archive.next()) is not None:
            archive.members.clear()  # kept for every file of the archive otherwise
            if entry.isreg():
                yield entry.name, entry.size, archive.extractfile(entry)
            elif not entry.isdir():
                yield entry.name, 0, None
        while forward.read(_MAX_HEADER_BYTES):  # to the checksum of a compressed archive
            pass


def _compression(head: bytes) -> str:
    """Return the suffix for what a file begins with, or nothing."""
    return next(
        (suffix for magic, suffix in COMPRESSION_MAGIC.items() if head[:6].startswith(magic)), ""
    )


class _Forward:
    """A file for `tarfile`: never read backwards, nor much at once whatever its headers state."""

    def __init__(self, path: AnyFile, max_bytes: int) -> None:
        with path.open("rb") as file:
            compression = _compression(file.read(6))
        self._stream, self._max_bytes = ByteStream(path, compression=compression), max_bytes

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header states {size:,} bytes")
        piece = self._stream.ahead(size)
        self.seek(self.tell() + len(piece))
        return piece

    def seek(self, offset: int) -> None:
        if not self.tell() <= offset <= self._max_bytes:
            raise tarfile.ReadError("its members overlap, or have too many bytes")
        self._stream.skip(offset - self.tell(), "an archive")

    def tell(self) -> int:
        return self._stream.position
