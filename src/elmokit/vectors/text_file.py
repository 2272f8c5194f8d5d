"""Word vectors as text (GloVe, word2vec, .vec): a word and its numbers per line.

They are separated by blanks; a tab may follow the word. word2vec and fastText begin with a line of
two numbers, the word count and the width.
"""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.lines import MAX_LINE_BYTES, raw_lines
from elmokit.vectors.static_vectors import StaticVectors, WordRows


def recognizes(head: bytes) -> bool:
    return True


def read(path: Path, only: Collection[str] | None) -> StaticVectors:
    """Read vectors in text form; ``only`` are the wanted words, in all `spellings`, None: all.

    Blank lines are ignored, words that cannot be read are skipped and counted.
    """
    rows = WordRows(path, only, unit="line")
    dim = promised = None
    for number, raw in enumerate(raw_lines(path, MAX_LINE_BYTES), 1):
        line = (raw or b"").rstrip()
        if number == 1 and is_header(line.split()):
            promised, dim = map(int, line.split())
            continue
        if raw is not None and not line:
            continue
        try:
            dim = _width(line, dim) if rows.num_words == 0 else dim
            fields = _fields(line, dim or 0)
            word = rows.decode(fields[0], number)
            if word is None:
                _numbers(fields)  # else the line is damaged, not only its word
            elif rows.lacks(word):
                rows.add(word, _numbers(fields), number)
        except FormatError:
            raise
        except ValueError as error:
            begin = line.split(b" ")[0].decode(errors="replace")
            raise FormatError(
                f"{path}, line {number}, after the word {begin!r:.40}: {error}. Is the file "
                "truncated, or its first line wrong?"
            ) from error
    if not dim:
        raise FormatError(f"{path}: no word vectors: a word and its numbers per line are needed.")
    if promised not in (None, rows.num_words):
        raise FormatError(
            f"{path}: the first line promises {promised:,} words, but {rows.num_words:,} follow."
        )
    return rows.vectors(dim)


def _width(line: bytes, promised: int | None) -> int:
    """Return the width of the first vector; refuse one that is wider than the header promises."""
    _, tab, rest = line.partition(b"\t")
    numbers = rest.split() if tab else line.split(b" ")[1:]
    if promised is None:
        return len(numbers)
    surplus = numbers[: max(len(numbers) - promised, 0)]
    if surplus and all(map(is_number, surplus)):  # they would become part of the word
        raise ValueError(f"{len(numbers)} numbers, but the first line of the file says {promised}")
    return promised


def _fields(line: bytes, dim: int) -> list[bytes]:
    """Return the word, which may contain blanks and tabs, and its numbers."""
    # From the right, because words may contain blanks, and numbers do not.
    fields = line.replace(b"\t", b" ").rsplit(b" ", dim)
    fields[0] = line[: len(fields[0])]
    if b"" in fields[1:]:  # several blanks between the numbers
        fields = line.rsplit(None, dim)
    if len(fields) <= max(dim, 1):
        raise ValueError(f"{len(fields) - 1} numbers, but {max(dim, 1)} are needed")
    return fields


def _numbers(fields: list[bytes]) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused later
        return np.array(b" ".join(fields[1:]).decode().split(" "), dtype=np.float32)


def is_header(fields: list[bytes]) -> bool:
    """Tell whether the fields of a first line are a word2vec header: count and width."""
    return len(fields) == 2 and all(field.isdigit() and len(field) < 12 for field in fields)


def is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
