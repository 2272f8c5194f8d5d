"""Zip and tar archives from anywhere, unpacked without leaving a folder or filling the disk.

Names that lead out of the folder, links and devices are refused, and so is an archive that states
or holds far more than files of weights can: nothing is believed before it is counted.
"""

import bz2
import gzip
import io
import lzma
import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from elmokit.errors import FormatError
from elmokit.files.damage import damage

MAX_MEMBERS = 10_000
"""Files and folders of an archive."""
MAX_GROWTH, SMALL_BYTES = 4, 1 << 26
"""Weights hardly shrink: all files together may have this many times the size of the archive, and
in any case 64 MB."""
MAX_HEADER_BYTES = 1 << 18
"""Of one header of a tar archive, of which `tarfile` reads chains; also read at a time."""

ArchiveKind = Literal["zip", "tar"]
_COMPRESSED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}


def archive_kind(path: Path) -> ArchiveKind | None:
    """Return what kind of archive a file is by its first bytes; None: neither zip nor tar.

    Any file compressed by gzip, bzip2 or xz counts as a tar archive.
    """
    with path.open("rb") as file:
        head = file.read(512)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    is_compressed = any(head.startswith(magic) for magic in _COMPRESSED)
    return "tar" if is_compressed or head[257:262] == b"ustar" else None


def unpack(archive: Path, folder: Path, *, archive_bytes: int | None = None) -> None:
    """Unpack all files of a zip or tar archive into an empty folder.

    Args:
        archive: The archive.
        folder: Where its files go.
        archive_bytes: By which the size of the files is limited, if the archive was in another.

    Raises:
        FormatError: if the archive is damaged, truncated or encrypted, too large for its size, or
            holds a link, a device, or a name that leads out of the folder.
        OSError: if there is not enough room.
    """
    size = archive.stat().st_size
    limit = max(SMALL_BYTES, MAX_GROWTH * (size if archive_bytes is None else archive_bytes))
    writer = _Writer(archive, folder, limit)
    advice = f"It has {size:,} bytes; fetch it again, or join its parts."
    what = "damaged or truncated, or one part of several: not a whole zip or tar archive"
    with damage(archive, advice, what=what):
        if archive_kind(archive) == "zip":
            _unpack_zip(archive, writer)
        else:
            _unpack_tar(archive, writer)


class _Writer:
    """Write members below a folder, counting what they really hold."""

    def __init__(self, archive: Path, folder: Path, limit: int) -> None:
        self._archive, self._folder, self._left = archive, folder, limit
        self._limit = limit
        self._num_members = 0
        self._seen: set[str] = set()

    def refuse(self, name: str, reason: str) -> FormatError:
        return FormatError(f"{self._archive}: not unpacked: its member {name[:200]!r} {reason}.")

    def count(self) -> None:
        self._num_members += 1
        if self._num_members > MAX_MEMBERS:
            raise FormatError(
                f"{self._archive}: not unpacked: it holds more than {MAX_MEMBERS:,} files."
            )

    def write(self, name: str, stated_bytes: int, source: Any) -> None:
        """Write one file; it may hold less than it states, but not more."""
        target = self._folder / self._inside(name)
        if stated_bytes > self._left:
            raise self._too_large()
        if stated_bytes > shutil.disk_usage(self._folder).free:
            raise OSError(28, os.strerror(28), str(self._folder))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            file = target.open("xb")
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise self.refuse(name, "needs a folder where a file is, or the reverse") from error
        with file:
            while piece := source.read(MAX_HEADER_BYTES):
                self._left -= len(piece)
                if self._left < 0:
                    raise self._too_large()
                file.write(piece)

    def drain(self, stream: Any) -> None:
        """Read what follows the last file, where a compressed stream has its checksum."""
        while piece := stream.read(MAX_HEADER_BYTES):
            self._left -= len(piece)
            if self._left < 0:
                raise self._too_large()

    def _inside(self, name: str) -> PurePosixPath:
        path = PurePosixPath(name)
        is_outside = path.is_absolute() or ".." in path.parts or not path.parts
        if is_outside or any(character in name for character in "\\\0:"):
            raise self.refuse(name, "has a name that leads out of the archive's folder")
        if str(path) in self._seen:
            raise self.refuse(name, "is there twice")
        self._seen.add(str(path))
        return path

    def _too_large(self) -> FormatError:
        return FormatError(
            f"{self._archive}: not unpacked: its files have more than {self._limit:,} bytes, more "
            f"than weights in an archive of {self._archive.stat().st_size:,} can have. If you "
            "trust it, unpack it yourself and give the folder."
        )


def _unpack_zip(archive: Path, writer: _Writer) -> None:
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            writer.count()
            if member.filename.endswith("/"):  # is_dir fails for a member without a name
                continue
            if (member.external_attr >> 16) & 0o170000 not in (0, 0o100000):
                raise writer.refuse(member.filename, "is a link or a device")
            if member.flag_bits & 1:
                raise writer.refuse(member.filename, "is encrypted")
            with file.open(member) as source:
                writer.write(member.filename, member.file_size, source)


def _unpack_tar(archive: Path, writer: _Writer) -> None:
    with _decompressed(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as file:
        position = -1
        while (member := file.next()) is not None:
            writer.count()
            if member.offset <= position:  # damaged sizes can lead back
                raise tarfile.ReadError("the members overlap")
            position = member.offset
            if member.isdir():
                continue
            if not member.isreg():
                raise writer.refuse(member.name, "is a link or a device")
            source = file.extractfile(member)
            assert source is not None
            writer.write(member.name, member.size, source)
        writer.drain(stream)


@contextmanager
def _decompressed(archive: Path) -> Iterator[Any]:
    with archive.open("rb") as file:
        head = file.read(8)
        file.seek(0)
        opener = next((make for magic, make in _COMPRESSED.items() if head.startswith(magic)), None)
        if opener is None:
            yield _ShortReads(file)
            return
        with opener(file) as stream:
            yield _ShortReads(stream)


class _ShortReads(io.RawIOBase):
    """A stream that refuses to read much at once: `tarfile` believes the sizes of headers."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header states {size:,} bytes")
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        if offset < 0:
            raise tarfile.ReadError("a size is negative")
        return self._stream.seek(offset, whence)

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell()
