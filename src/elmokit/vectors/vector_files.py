"""Files of static word vectors in every form, told apart by content: GloVe, word2vec, fastText.

Text (a word and its numbers a line, with or without word2vec's first line of count and width) is
read by `static_vectors`, fastText's binary models by `fasttext_file`. word2vec's binary form is
read and written here: the same first line, then each word, a blank, its float32 values (little
endian) and, in most files, a line feed.
"""

import codecs
import logging
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from elmokit.errors import FormatError, InputError
from elmokit.files.atomic import atomic_file
from elmokit.files.byte_stream import ByteStream
from elmokit.files.hashing import file_sha256
from elmokit.vectors import fasttext_file
from elmokit.vectors.static_vectors import (
    MAX_DIM,
    MAX_WORD_BYTES,
    KeptVectors,
    StaticVectors,
    existing_file,
    is_header,
    is_number,
    read_text_vectors,
)

log = logging.getLogger(__name__)

Form = Literal["text", "binary"]
_SUFFIXES: dict[str, Form] = {".bin": "binary", ".txt": "text", ".vec": "text"}
_HEAD_BYTES = 1 << 16
_HEADER_BYTES = 64
_PICKLE = b"\x80"
"""How everything that gensim saves by itself begins."""
_FEW_BAD_WORDS, _MAX_BAD_SHARE = 100, 0.1
"""Past both, the header does not fit the file."""


def read_vectors(
    path: str | os.PathLike[str], *, only: Collection[str] | None = None
) -> StaticVectors:
    """Read word vectors of any form: text, word2vec's binary form, fastText's binary model.

    Memory holds the vectors of wanted words alone, however long the file is.

    Args:
        path: The file, plain or compressed (.gz, .xz, .bz2, .zst).
        only: Words that are wanted, in lower case too; none: all of them. From a fastText model
            those that it lacks in either form get a vector too, of their character n-grams.

    Raises:
        FileNotFoundError: if there is no such file.
        FormatError: if it is cut, damaged or of another form, with file and position.
    """
    stream = ByteStream(existing_file(path))
    head = stream.ahead(_HEAD_BYTES)
    if head.startswith(fasttext_file.MAGIC):
        return fasttext_file.read_fasttext(stream, only)
    if head.startswith(_PICKLE):
        raise FormatError(
            f"{stream.path}: looks like a Python pickle, as gensim saves its models, and loading "
            "one could run any code. Write it in word2vec's form with gensim: "
            "model.wv.save_word2vec_format('vectors.bin', binary=True)."
        )
    if _is_word2vec_binary(head):
        return _read_word2vec(stream, only)
    return read_text_vectors(stream.path, only=only)


@dataclass(frozen=True, kw_only=True)
class VectorsReference:
    """Which file of word vectors it was: where it lay, and what it held."""

    path: str
    """Absolute."""
    sha256: str
    """Of the file as it is, compressed or not."""

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> "VectorsReference":
        """Refer to a file.

        Raises:
            FileNotFoundError: if there is no such file.
        """
        file = existing_file(path).absolute()
        return cls(path=str(file), sha256=file_sha256(file))


class LaterWords:
    """Looks up the vectors of words that came after the training, in the file it was done with.

    The file is hashed before it is first read; one that is gone or another one is told in a warning
    and never read. Every word is looked up once.

    Args:
        reference: The file.
    """

    def __init__(self, reference: VectorsReference) -> None:
        self._reference = reference
        self._asked: set[str] = set()
        self._is_right: bool | None = None

    def find(self, words: Collection[str]) -> StaticVectors | None:
        """Return the vectors of those words that were not asked for before; none: there are none.

        Raises:
            FormatError: if the file is damaged.
        """
        new = [word for word in words if word not in self._asked]
        self._asked.update(new)
        if not new or not self._can_be_read(len(new)):
            return None
        return read_vectors(self._reference.path, only=new)

    def _can_be_read(self, num_words: int) -> bool:
        if self._is_right is False:
            return False
        file = Path(self._reference.path)
        problem = None
        if not file.is_file():
            problem = "is gone"
        elif self._is_right is None and file_sha256(file) != self._reference.sha256:
            problem = "is not the file that the run was trained with"
        self._is_right = problem is None
        if problem is not None:
            log.warning(
                "%s %s: %d words that the training data did not have get no static vector",
                file, problem, num_words,
            )  # fmt: skip
        return self._is_right


def form_of(path: str | os.PathLike[str]) -> Form:
    """Return the form in which a file of this name is written.

    Raises:
        InputError: if its suffix says none.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(
            f"The name of {os.fspath(path)} must say the form of the vectors: .bin for binary, "
            ".txt or .vec for text."
        )
    return _SUFFIXES[suffix]


def write_vectors(path: str | os.PathLike[str], words: Sequence[str], values: np.ndarray) -> None:
    """Write vectors in word2vec's form, binary (.bin) or text (.txt, .vec); whole or not at all.

    The text form holds the shortest decimals that give the same float32 again.

    Args:
        path: The file; replaced if it exists.
        words: None empty or with a blank, line feed or NUL.
        values: (len(words), S).

    Raises:
        InputError: for another suffix.
        ValueError: for words that cannot be written, or another number of rows.
    """
    form = form_of(path)
    if values.ndim != 2 or len(values) != len(words):
        raise ValueError(f"{len(words)} words need as many rows, got {values.shape}.")
    for word in words:
        if not word or any(mark in word for mark in " \n\0"):
            raise ValueError(f"{word!r:.40} cannot be a word of a file of word vectors.")
    with atomic_file(path) as temp_path, temp_path.open("wb") as file:
        file.write(f"{len(words)} {values.shape[1]}\n".encode("ascii"))
        for word, row in zip(words, values.astype("<f4", copy=False), strict=True):
            numbers = row.tobytes() if form == "binary" else " ".join(row.astype(str)).encode()
            file.write(word.encode() + b" " + numbers + b"\n")


def _is_word2vec_binary(head: bytes) -> bool:
    """Whether a word2vec header is followed by what is no text."""
    header, line_feed, body = head.partition(b"\n")
    fields = header.decode("ascii", "replace").strip().split(" ")
    if not line_feed or not is_header(fields):
        return False
    first = body.partition(b"\n")[0].rstrip().split(b" ")
    if len(first) > int(fields[1]) and all(map(is_number, first[-int(fields[1]) :])):
        return False
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return True
    return any(character < " " and character not in "\t\r\n" for character in text)


def _read_word2vec(stream: ByteStream, only: Collection[str] | None) -> StaticVectors:
    header = stream.take_until(b"\n", _HEADER_BYTES, "the first line")
    count, dim = map(int, header.split())
    if not (0 < dim <= MAX_DIM and count > 0):
        raise FormatError(
            f"{stream.path}, line 1: {count} words of {dim} numbers each cannot be. The first line "
            "of word vectors in binary form is their count and width."
        )
    kept, num_bad, first_bad = KeptVectors(only), 0, 0
    for number in range(1, count + 1):
        what = f"word {number:,} of {count:,} (width {dim})"
        raw = stream.take_until(b" ", MAX_WORD_BYTES, what).lstrip(b"\n")
        position = stream.position - len(raw) - 1
        values = stream.take(4 * dim, what)
        word = _decode(raw)
        if word is None:
            num_bad, first_bad = num_bad + 1, first_bad or position
            if num_bad > _FEW_BAD_WORDS and num_bad > _MAX_BAD_SHARE * number:
                raise FormatError(
                    f"{stream.path}: {num_bad} of the first {number:,} words are not UTF-8, the "
                    f"first at byte {first_bad:,}. The file is damaged, or its first line, which "
                    f"promises {count:,} words of {dim} numbers, does not fit it."
                )
        elif kept.wants(word):
            row = np.frombuffer(values, "<f4").astype(np.float32)
            kept.keep(word, row, f"{stream.path}, byte {position:,}")
    if rest := stream.ahead(32).strip(b"\n"):
        raise FormatError(
            f"{stream.path}, byte {stream.position:,}: the file goes on ({rest!r}) after the "
            f"{count:,} words of {dim} numbers that its first line promises. It is damaged, or "
            "the first line does not fit it."
        )
    if num_bad:
        log.warning(
            "%s: %d of %d words are not UTF-8 (the first at byte %d); they are left out",
            stream.path, num_bad, count, first_bad,
        )  # fmt: skip
    return kept.vectors(dim)


def _decode(raw: bytes) -> str | None:
    """Return a word, or none for what is not text; NUL, which numbers abound in, is none."""
    try:
        return None if not raw or b"\0" in raw else raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
