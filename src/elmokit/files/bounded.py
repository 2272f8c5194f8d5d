"""Sizes beyond which a file is not what it should be, and reading whole files up to one."""

import os
from pathlib import Path

from elmokit.errors import FormatError

MAX_TOML_BYTES = 2**20
"""Of recipes: 1 MB."""
MAX_SETTINGS_BYTES = 2**26
"""Of JSON files with settings and metadata: 64 MB."""
MAX_DOCUMENT_BYTES = 2**28
"""Of data in one JSON document: 256 MB, several times SQuAD."""
MAX_WORD_LIST_BYTES = 2**29
"""Of vocabularies: 512 MB, some 50 million words."""
_MAX_COMPRESSION = 1032
"""Bytes that deflate makes of one, at most. No other compression is believed to make more."""
_MAX_GROWTH, _GROWTH_BYTES, _SMALL_BYTES = 2, 1 << 26, 1 << 16
"""Numbers hardly shrink, so files may hold twice their size (half precision), and some megabytes
more; what small files hold is bounded by what compression can do."""

_PIECE_BYTES = 2**20


def read_bounded(
    path: str | os.PathLike[str], max_bytes: int, *, missing: str | None = None
) -> bytes:
    """Return the bytes of a file, which may be a pipe."""
    if missing is not None and not Path(path).exists():
        raise FileNotFoundError(missing)
    pieces, left = [], max_bytes + 1
    with Path(path).open("rb") as file:
        if os.fstat(file.fileno()).st_size <= max_bytes:
            while left and (piece := file.read(min(left, _PIECE_BYTES))):
                pieces.append(piece)
                left -= len(piece)
            if left:
                return b"".join(pieces)
    raise too_large(path, max_bytes)


def most_bytes(num_stored: int) -> int:
    """Return how many bytes may be made of numbers that are stored in so many bytes.

    A file that states more is damaged, or names what it stores many times to fill the memory.
    """
    believed = _MAX_COMPRESSION * num_stored + _SMALL_BYTES
    return min(believed, _MAX_GROWTH * num_stored + _GROWTH_BYTES)


def check_growth(path: object, num_bytes: int, num_stored: int) -> None:
    """Refuse to make more bytes of a file's arrays than `most_bytes`."""
    if num_bytes > most_bytes(num_stored):
        raise FormatError(
            f"{path}: its arrays would take {num_bytes:,} bytes in memory, of {num_stored:,} that "
            f"are stored; at most {most_bytes(num_stored):,} are believed. It is damaged, or names "
            "the same data many times."
        )


def too_large(path: str | os.PathLike[str], max_bytes: int) -> FormatError:
    """Return the error for a file beyond the size."""
    return FormatError(
        f"{os.fspath(path)}: larger than {max_bytes:,} bytes, the limit for such a file. "
        "Is it the right one? If it is data, split it."
    )
