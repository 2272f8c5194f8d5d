"""The files in a tar or zip archive, read one after the other; nothing is unpacked to disk."""

import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from elmokit.errors import FormatError
from elmokit.files.archives import MAX_HEADER_BYTES
from elmokit.files.byte_stream import ByteStream
from elmokit.files.damage import damage
from elmokit.files.remote import AnyFile, RemoteFile
from elmokit.files.sources import file_kind


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

    Each is to be read before the next one. Links and devices are left out.

    Raises:
        FormatError: for a damaged or encrypted archive, and for a member that is an archive or a
            Parquet file, which cannot be read from front to back.
    """
    if file_kind(path) != "archive":
        yield path
        return
    advice = "Unpack it yourself, or fetch it again."
    with damage(path, advice, what="damaged or encrypted archive"):
        for name, stream in _of_zip(path) if path.suffix.lower() == ".zip" else _of_tar(path):
            if any(part.startswith(".") for part in set(PurePosixPath(name).parts) - {".."}):
                continue
            member = ArchiveMember(f"{path}/{name}", stream)
            if file_kind(member) in ("archive", "parquet"):
                raise FormatError(f"{member}: not read inside an archive. Unpack {path}.")
            yield member


def _of_zip(path: AnyFile) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                with archive.open(entry) as stream:
                    yield entry.filename, stream


def _of_tar(path: AnyFile) -> Iterator[tuple[str, Any]]:
    forward: Any = _Forward(path)
    with tarfile.open(fileobj=forward, mode="r:") as opened:
        archive: Any = opened
        while (entry := archive.next()) is not None:
            archive.members.clear()  # kept for every file of the archive otherwise
            if entry.isreg() and (stream := archive.extractfile(entry)) is not None:
                with stream:
                    yield entry.name, stream
        while forward.read(1 << 18):  # to the checksum of a compressed archive
            pass


class _Forward:
    """A file for `tarfile`: never read backwards, nor much at once whatever its headers state."""

    def __init__(self, path: AnyFile) -> None:
        self._stream = ByteStream(path)

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header states {size:,} bytes")
        piece = self._stream.ahead(size)
        self._stream.skip(len(piece), "")
        return piece

    def seek(self, offset: int) -> None:
        if offset < self.tell():
            raise tarfile.ReadError("its members overlap")
        self._stream.skip(offset - self.tell(), "an archive")

    def tell(self) -> int:
        return self._stream.position
