"""Word vectors as text (GloVe, word2vec, .vec): a word and its numbers per line.

They are separated by blanks; a tab may follow the word.

word2vec and fastText begin with a line of two numbers, the word count and the width.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import IO

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.byte_stream import ByteStream
from elmokit.files.lines import MAX_LINE_BYTES, raw_lines, text_of_line
from elmokit.vectors.static_vectors import KeptVectors, StaticVectors, WordDecoder

_ADVICE = "Word vectors must be UTF-8; convert the file: iconv -f ENCODING -t UTF-8 IN > OUT."


def recognizes(head: bytes) -> bool:
    """Accept any file: the other formats are tried first."""
    return True


def read(stream: ByteStream, only: Collection[str] | None) -> StaticVectors:
    """Read vectors in text form; ``only`` are the wanted words, in all `spellings`, None: all.

    Blank lines are ignored, words that cannot be read are skipped as by `WordDecoder`.

    Raises:
        FormatError: for a line with no, fewer or invalid numbers, with file and line; for counts
            of words or numbers that differ from the header; for too many words that cannot be read.
    """
    file, kept = stream.path, KeptVectors(only)
    words = WordDecoder(file, "line", _ADVICE)
    dim, promised = 0, None
    for number, raw in enumerate(raw_lines(file, MAX_LINE_BYTES), 1):
        line = _Line(file, number, raw)
        fields = line.fields(dim)
        if number == 1 and is_header(fields):
            promised, dim = map(int, fields)
            continue
        if not line.content:
            continue
        if len(fields) < 2:
            raise line.error(
                f"no numbers after {line.begin}. Word vectors in text form have a word and its "
                "numbers on each line, separated by blanks."
            )
        if promised is not None and not words.num_words:
            line.check_width(dim)
        if not dim:
            dim = len(fields) - 1
            fields = line.fields(dim)
        if len(fields) <= dim:
            raise line.error(
                f"{len(fields) - 1} numbers after {line.begin}, but {dim} are needed. Is the file "
                "truncated?"
            )
        word = words.decode(fields[0], number)
        if word is None:
            line.numbers(fields)  # else the line is damaged, not only its word
        elif kept.wants(word):
            kept.keep(word, line.numbers(fields), f"{file}, line {number}")
    if not dim:
        raise FormatError(
            f"{file}: no word vectors. Give a file with a word and its numbers per line."
        )
    if promised not in (None, words.num_words):
        raise FormatError(
            f"{file}: the first line promises {promised:,} words, but {words.num_words:,} follow. "
            "The file is truncated or was concatenated; correct the first line if it is complete."
        )
    words.finish()
    return kept.vectors(dim)


class _Line:
    """A line of the file, undecoded."""

    def __init__(self, file: Path, number: int, raw: bytes | None) -> None:
        self._file, self._number, self._raw = file, number, raw
        if raw is None:
            raise self.error("")
        self.content = raw.rstrip()

    @property
    def begin(self) -> str:
        """The first field, for messages."""
        return f"{self.content.split(b' ', 1)[0].decode(errors='replace')!r:.40}"

    def error(self, problem: str) -> FormatError:
        """Return the error about this line; raise that about its encoding if it is not UTF-8."""
        text_of_line(self._raw, self._file, self._number)
        return FormatError(f"{self._file}, line {self._number}: {problem}")

    def fields(self, dim: int) -> list[bytes]:
        """Return the word, which may contain blanks and tabs, and its numbers (0: all others)."""
        if not dim and b"\t" in self.content:
            word, _, numbers = self.content.partition(b"\t")
            return [word, *numbers.split()]
        word, *numbers = self.content.replace(b"\t", b" ").rsplit(b" ", dim or -1)
        if b"" in numbers:  # several blanks between them
            return self.content.rsplit(None, dim or -1)
        return [self.content[: len(word)], *numbers]

    def numbers(self, fields: list[bytes]) -> np.ndarray:
        """Return the vector (S,)."""
        try:
            numbers = b" ".join(fields[1:]).decode().split(" ")
            with np.errstate(over="ignore"):  # 1e99 becomes inf, which is refused with its word
                return np.array(numbers, dtype=np.float32)
        except ValueError as error:
            raise self.error(
                f"invalid numbers after the word {self.begin}: {error}. Word vectors in text form "
                "have a word and its numbers on each line."
            ) from error

    def check_width(self, dim: int) -> None:
        """Refuse a vector wider than the header says: numbers would become part of its word."""
        fields = self.content.split()
        surplus = fields[1:-dim] if dim else fields[1:]
        if surplus and all(map(is_number, surplus)):
            raise self.error(
                f"{len(fields) - 1} numbers after {self.begin}, but the first line of the file "
                f"says that vectors have {dim}. Correct that line, or use another file."
            )


def is_header(fields: list[bytes]) -> bool:
    """Tell whether the fields of a first line are a word2vec header: count and width."""
    return len(fields) == 2 and all(field.isdigit() and len(field) < 12 for field in fields)


def is_number(field: bytes) -> bool:
    """Tell whether a field is a decimal number."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def write_rows(file: IO[bytes], rows: Iterable[tuple[str, np.ndarray]]) -> None:
    """Write words and float32 rows, in the shortest decimals that restore the same float32."""
    for word, row in rows:
        file.write(f"{word} {' '.join(row.astype(str))}\n".encode())
