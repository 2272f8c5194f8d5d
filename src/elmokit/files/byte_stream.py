"""Sequential reading of a binary file, decompressed, in bounded memory."""

from elmokit.errors import FormatError
from elmokit.files.remote import AnyFile
from elmokit.files.sources import COMPRESSIONS, read_pieces

_SKIPPED_TOGETHER = 1 << 20


class ByteStream:
    """Reads a file a few bytes at a time; .gz, .xz, .bz2 and .zst are decompressed.

    ``compression`` is as for `read_pieces`.
    """

    def __init__(self, path: AnyFile, *, compression: str | None = None) -> None:
        self.path = path
        self._pieces = read_pieces(path, compression=compression)
        self._held, self._at, self._num_before = b"", 0, 0

    @property
    def is_compressed(self) -> bool:
        """Whether positions count decompressed bytes."""
        return self.path.suffix.lower() in COMPRESSIONS

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return self._num_before + self._at

    def ahead(self, num_bytes: int) -> bytes:
        """Return the next bytes without consuming them; fewer at the end of the file."""
        self._hold(num_bytes)
        return self._held[self._at : self._at + num_bytes]

    def take(self, num_bytes: int, what: str) -> bytes:
        """Return the next bytes; raise `FormatError`, which names ``what``, if there are fewer."""
        if not self._hold(num_bytes):
            raise self.cut(what)
        begin = self._at
        self._at += num_bytes
        return self._held[begin : self._at]

    def take_until(self, end: bytes, max_bytes: int, what: str) -> bytes:
        """Return the bytes before the next ``end``, and consume ``end`` too."""
        found = self._held.find(end, self._at, self._at + max_bytes)
        if found < 0:
            is_held = self._hold(max_bytes)
            found = self._held.find(end, self._at, self._at + max_bytes)
            if found < 0 and is_held:
                raise FormatError(
                    f"{self.path}, byte {self.position:,}: {what} is longer than {max_bytes:,} "
                    "bytes. The file is damaged, or its header is wrong."
                )
        if found < 0:
            raise self.cut(what)
        taken = self._held[self._at : found]
        self._at = found + len(end)
        return taken

    def skip(self, num_bytes: int, what: str) -> None:
        """Skip any number of bytes in bounded memory."""
        while num_bytes > 0:
            step = min(num_bytes, _SKIPPED_TOGETHER)
            self.take(step, what)
            num_bytes -= step

    def cut(self, what: str) -> FormatError:
        """Return the error for a file that ends within ``what``."""
        return FormatError(
            f"{self.path}, byte {self.position:,}: the file ends in the middle of {what}. It is "
            "truncated, or its header is wrong: fetch or write it again."
        )

    def _hold(self, num_bytes: int) -> bool:
        """Buffer so many bytes; False if the file has fewer."""
        num_held = len(self._held) - self._at
        if num_held >= num_bytes:
            return True
        parts = [self._held[self._at :]]
        while num_held < num_bytes and (piece := next(self._pieces, None)) is not None:
            parts.append(piece)
            num_held += len(piece)
        self._num_before += self._at
        self._held, self._at = b"".join(parts), 0
        return num_held >= num_bytes
