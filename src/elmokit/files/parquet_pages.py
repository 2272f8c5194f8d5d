"""What the pages of a Parquet file become in memory, counted before pyarrow makes it.

A dictionary or RLE page names one value any number of times, so that a kilobyte can stand for
gigabytes. pyarrow does not bound that. The counts in the footer do not either, as only those of
the pages are followed, and where the statistics beside them are damaged, asking pyarrow for them
ends the process. So the footer and the headers of pages are read here.

Source: Parquet format (``parquet.thrift``) and the compact protocol of Thrift, whose structures
are read as dictionaries of field number → value.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from elmokit.files.remote import AnyFile

_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8, 6: 4}
"""Bytes of a value by physical type; of texts (6) those of an index. 7 is of stated length."""
_TEXT = 6
_DICTIONARY_PAGE, _DELTA_BYTE_ARRAY = 2, 7
_PAGE_COST = 512
"""Charged for any page: millions without values would cost only time."""
_USUAL_HEADER, _LONGEST_HEADER = 1 << 12, 1 << 20


@dataclass(frozen=True)
class Page:
    """A page by its header."""

    num_bytes: int
    """Decompressed."""
    num_values: int
    """Including nulls; 0 for a dictionary."""
    names_again: bool
    """Whether it is a dictionary, or of texts that share what they begin with."""


class ParquetPages:
    """Reads the footer of a file, and on request the headers of pages."""

    def __init__(self, path: AnyFile) -> None:
        self._path = path
        with path.open("rb") as file:
            file.seek(-8, 2)
            end = file.tell()
            length = int.from_bytes(file.read(4), "little")
            file.seek(end - length)
            footer = _Thrift(file.read(length)).structure()
        self._groups = [[chunk[3] for chunk in group[1]] for group in footer.get(4, ())]

    def pages(self, group: int, column: int) -> Iterator[Page]:
        """Yield the pages of a leaf column in a row group, in order."""
        chunk = self._groups[group][column]
        at = min(chunk[9], chunk.get(11) or chunk[9])
        end = at + chunk[7]
        with self._path.open("rb") as file:
            while at < end:
                header, num_bytes = _page_header(file, at)
                at += num_bytes + header[3]
                if min(header[2], header[3]) < 0:
                    raise ValueError("a page of negative size")
                values = header.get(5) or header.get(8) or {}
                is_dictionary = header[1] == _DICTIONARY_PAGE
                names_again = is_dictionary or values.get(2) == _DELTA_BYTE_ARRAY
                yield Page(header[2], 0 if is_dictionary else values.get(1, 0), names_again)

    def num_bytes(self, group: int, column: int, *, value_bytes: int) -> int:
        """Return what a column of a row group takes when it is read.

        Of texts from dictionaries only indices are counted; see ``read_dictionary`` of pyarrow.
        ``value_bytes`` is the stated length of values that have one.
        """
        kind, total = self._groups[group][column][1], 0
        width = _WIDTHS.get(kind, value_bytes)
        for page in self.pages(group, column):
            again = page.num_bytes if kind == _TEXT and page.names_again else 0
            total += max(_PAGE_COST, page.num_bytes, page.num_values * max(width, again))
        return total


def _page_header(file: Any, at: int) -> tuple[dict[int, Any], int]:
    """Return a header and how many bytes it has."""
    for most in (_USUAL_HEADER, _LONGEST_HEADER):
        file.seek(at)
        thrift = _Thrift(file.read(most))
        try:
            return thrift.structure(), thrift.at
        except IndexError:
            continue
    raise ValueError("the header of a page has no end")


class _Thrift:
    """Reads values from bytes; `IndexError` where they end."""

    def __init__(self, content: bytes) -> None:
        self._content, self.at = content, 0

    def structure(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (1, 2, 3):
            return self._byte()
        if kind in (4, 5, 6):
            return self._integer()
        if kind in (7, 8):
            return self._bytes(8 if kind == 7 else self._number())
        if kind in (9, 10):
            head = self._byte()
            count = head >> 4 if head < 0xF0 else self._number()
            return [self._value(head & 15) for _ in range(count)]
        if kind == 12:
            return self.structure()
        raise ValueError(f"a value of the kind {kind}")

    def _byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]

    def _bytes(self, count: int) -> bytes:
        self.at += count
        if self.at > len(self._content):
            raise IndexError("the bytes end")
        return self._content[self.at - count : self.at]

    def _number(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

    def _integer(self) -> int:
        number = self._number()
        return number >> 1 ^ -(number & 1)  # zigzag: the sign is the last bit
