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
from elmokit.files.remote import AnyFile, RemoteFile
from elmokit.files.sources import compression_of, damage, file_kind, open_stream

MAX_MEMBERS = 10_000
"""Files of an archive that is unpacked."""
MAX_GROWTH, SMALL_BYTES = 4, 1 << 26
"""Weights hardly shrink: all files together may have this many times the size of the archive, and
in any case 64 MB."""
_MAX_READ_BYTES = 1 << 18
"""Of one header of a tar archive, of which `tarfile` reads chains; also read at a time."""

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
        members = _members(archive, archive_kind(archive) or "tar", max_bytes=2 * limit)
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
    kind = "zip" if path.suffix.lower() == ".zip" else "tar"
    with damage(
        path, "Unpack it yourself, or fetch it again.", what="damaged or encrypted archive"
    ):
        for name, _, stream in _members(path, kind):
            is_hidden = any(part[0] == "." for part in {*PurePosixPath(name).parts} - {".."})
            if stream is None or is_hidden:
                continue
            member = ArchiveMember(f"{path}/{name}", stream)
            if file_kind(member) in ("archive", "parquet"):
                raise FormatError(f"{member}: not read inside an archive. Unpack {path}.")
            yield member


def _members(
    path: AnyFile, kind: ArchiveKind, *, max_bytes: int = 1 << 62
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
        # `for` would go through the list of members, which is emptied
        while (entry := archive.next()) is not None:
            archive.members.clear()  # kept for every file of the archive otherwise
            if not entry.isdir():
                content = archive.extractfile(entry) if entry.isreg() else None
                yield entry.name, entry.size, content
        while forward.read(_MAX_READ_BYTES):  # to the checksum of a compressed archive
            pass


class _Forward:
    """A file for `tarfile`: never read backwards, nor much at once whatever its headers state."""

    def __init__(self, path: AnyFile, max_bytes: int) -> None:
        with path.open("rb") as file:
            compression = compression_of(file.read(10))
        self._stream, self._at = open_stream(path, compression=compression), 0
        self._max_bytes = max_bytes

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_READ_BYTES or self._at + size > self._max_bytes:
            raise tarfile.ReadError(f"a header states {size:,} bytes, or it has too many bytes")
        piece = self._stream.read(size)
        self._at += len(piece)
        return piece

    def seek(self, offset: int) -> None:
        if not self._at <= offset <= self._max_bytes:
            raise tarfile.ReadError("its members overlap, or have too many bytes")
        while self._at < offset:
            if not self.read(min(offset - self._at, _MAX_READ_BYTES)):
                raise tarfile.ReadError("it ends in the middle of a file")

    def tell(self) -> int:
        return self._at
