"""Files of static word vectors, recognized by content.

fastText, word2vec, text (GloVe), and the tables of `elmokit distil`. A new format is a function
that recognizes the first bytes of a file, one that reads it, and a line in `_FORMATS`.
"""

import logging
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError, InputError
from elmokit.files.atomic import atomic_file
from elmokit.files.sources import existing_file, file_sha256, open_stream
from elmokit.vectors import fasttext_file, glove_word2vec_file, safetensors_file
from elmokit.vectors.static_vectors import UNKNOWN_ID, StaticVectors

log = logging.getLogger(__name__)

SUFFIXES = (".bin", ".txt", ".vec")
"""Of files that are written: word2vec's binary form, and its text."""
_FORMATS = (
    (safetensors_file.recognizes, safetensors_file.read),
    (fasttext_file.recognizes, fasttext_file.read),
    (glove_word2vec_file.is_binary, glove_word2vec_file.read_binary),
    (lambda head: True, glove_word2vec_file.read_text),
)
_HEAD_BYTES = 1 << 16
_PICKLE = b"\x80"


def read_vectors(
    path: str | os.PathLike[str], *, only: Collection[str] | None = None
) -> StaticVectors:
    """Read word vectors of any form, plain or compressed (.gz, .xz, .bz2, .zst).

    Memory holds only the wanted vectors: of the words of ``only`` in all their `spellings`, or
    (None) all. From a fastText model, words that it lacks get a vector from their n-grams.
    """
    file = _existing(path)
    head = _head(file)
    if head.startswith(_PICKLE):
        raise FormatError(
            f"{file}: a Python pickle, which could run any code. Convert it with gensim: "
            "model.wv.save_word2vec_format('vectors.bin', binary=True)."
        )
    return next(read for recognizes, read in _FORMATS if recognizes(head))(file, only)


def _existing(path: str | os.PathLike[str]) -> Path:
    return existing_file(path, what="word vectors", is_read_twice=True)


def _head(file: Path) -> bytes:
    return open_stream(file).peek(_HEAD_BYTES)[:_HEAD_BYTES]


def makes_vectors(file: Path) -> bool:
    """Tell whether a file is a fastText model, which has vectors also of words it does not list."""
    return fasttext_file.recognizes(_head(file))


def read_vectors_of(path: str | os.PathLike[str], words: Iterable[str]) -> StaticVectors:
    """Read the vectors of the words of a text; log for how many of them there is one."""
    counts = Counter(words)
    static = read_vectors(path, only=counts.keys())
    known = sum(count for word, count in counts.items() if static.id_of(word) != UNKNOWN_ID)
    if counts and not known:
        raise InputError(f"{path} has vectors for none of the words of the data.")
    share = known / max(1, counts.total())
    level = logging.INFO if share >= 0.5 else logging.WARNING
    log.log(level, "%s has vectors for %.0f %% of the words of the data", path, 100 * share)
    return static


@dataclass(frozen=True, kw_only=True)
class VectorsReference:
    """Identifies a file of word vectors."""

    path: str
    """Absolute; its name, if the run keeps all of its vectors."""
    sha256: str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> "VectorsReference":
        file = _existing(path).absolute()
        return cls(path=str(file), sha256=file_sha256(file))


class LaterWords:
    """Looks up words that came after training in the vector file of the training, each word once.

    A missing or different file causes a warning and is never read.
    """

    def __init__(self, reference: VectorsReference) -> None:
        self._file, self._sha256 = Path(reference.path), reference.sha256
        self._asked: set[str] = set()
        self._is_right: bool | None = None

    def find(self, words: Collection[str]) -> StaticVectors | None:
        new = [word for word in words if word not in self._asked]
        self._asked.update(new)
        if not new or self._is_right is False:
            return None
        if self._is_right is None or not self._file.is_file():
            self._is_right = self._file.is_file() and file_sha256(self._file) == self._sha256
        if self._is_right:
            return read_vectors(self._file, only=new)
        log.warning(
            "%s is gone or another file: %d unseen words get no static vector", self._file, len(new)
        )
        return None

    def read_all(self) -> StaticVectors:
        """Return every vector that the file lists; of a fastText model, warn about the others."""
        if file_sha256(_existing(self._file)) != self._sha256:
            raise FormatError(f"{self._file} is not the file that the run was trained with.")
        if makes_vectors(self._file):
            log.warning("%s makes vectors of unlisted words, which are not kept", self._file)
        return read_vectors(self._file)


def check_suffix(path: str | os.PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"The suffix of {os.fspath(path)} must be one of {', '.join(SUFFIXES)}.")
    return suffix


def write_vectors(path: str | os.PathLike[str], words: Sequence[str], values: np.ndarray) -> None:
    """Write vectors in word2vec's form, binary (.bin) or text (.txt, .vec), atomically.

    Words must not be empty or contain a blank, line feed or NUL, in text also no tab; ``values`` is
    (len(words), S).
    """
    is_binary = check_suffix(path) == ".bin"
    refused = " \n\0" if is_binary else " \t\n\0"
    for word in words:
        if not word or any(mark in word for mark in refused):
            raise ValueError(f"{word!r:.40} is not allowed in a file of word vectors.")
    with atomic_file(path) as temp_path, temp_path.open("wb") as file:
        file.write(f"{len(words)} {values.shape[1]}\n".encode())
        for word, row in zip(words, values.astype("<f4", copy=False), strict=True):
            # NumPy writes the shortest decimals that restore the same float32.
            numbers = row.tobytes() if is_binary else " ".join(row.astype(str)).encode()
            file.write(word.encode() + b" " + numbers + b"\n")
