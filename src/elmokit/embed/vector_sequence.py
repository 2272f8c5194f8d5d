"""Embedding files of every format, read back as one sequence of sentences."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elmokit.embed.formats.registry import find_format, read_metadata
from elmokit.embed.formats.rows import READ_ADVICE
from elmokit.errors import FormatError, counted
from elmokit.files.sources import damage


class SentenceVectors(NamedTuple):
    """A sentence of an embedding file."""

    tokens: list[str] | None
    """Its words; None in files of other programs and of elmokit 0.1."""
    vectors: np.ndarray
    """(L, W, 2D), or (W, 2D) if the file holds one layer; in the data type of the file. Of a file
    of pooled sentences (L, 2D) or (2D,); in files of other programs any of these."""


_FOREIGN_ADVICE = (
    "Of files that elmokit did not write, it reads arrays of floating-point numbers with one to "
    "three dimensions, in HDF5 those in the root of the file."
)


class VectorSequence(Sequence):
    """The sentences of an embedding file, in order; see `open_vectors`.

    Positions count the sentences of the file from 0; `line_numbers` says which lines of the text
    they are, `keys` what they are called in the file. Sentences are read when they are asked for:
    memory holds 8 bytes for each, or its key if that is no number, and of a Parquet file some rows
    (iteration) or one row group (single positions). Forked processes and unpickled copies open the
    file themselves. Not for several threads at once.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._absolute_path = path, path.absolute()
        self._is_closed = self._is_foreign = False
        self.metadata: dict[str, Any] = {}
        """How the vectors were made; empty in files of other programs."""
        self._module = find_format(path).module
        with suppress(FormatError):
            self.metadata = read_metadata(path, advice=READ_ADVICE)
        self._open()
        self.line_numbers: np.ndarray = self._opened.indices
        """Line of the text, from 0, of each sentence (S,): not all of them in a shard."""
        self._is_foreign = not self.metadata
        if self._is_foreign and not len(self.line_numbers):
            self.close()
            raise FormatError(f"{path}: no word vectors. {_FOREIGN_ADVICE}")

    def _open(self) -> None:
        with self._reading():
            self._opened, self._pid = self._module.Reader(self._absolute_path), os.getpid()

    @property
    def _reader(self) -> Any:
        """The open file; a forked process opens it again, as it shares the place in the old one."""
        if self._pid != os.getpid():
            self._opened.close()
            self._open()
        return self._opened

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the path: the file is opened again wherever it is unpickled."""
        with self._reading():
            return open_vectors, (self._absolute_path,)

    def __len__(self) -> int:
        return len(self.line_numbers)

    def keys(self) -> list[str]:
        """Return the key of each sentence: its name in the file, which may be a number."""
        return self._reader.names or [str(number) for number in self.line_numbers]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {key: position for position, key in enumerate(self.keys())}

    def __contains__(self, key: object) -> bool:
        return key in self._positions

    def __getitem__(self, index: int | str | slice) -> Any:
        """Read the sentence (`SentenceVectors`) at a position or with a key, or a list by slice."""
        position = self._positions[index] if isinstance(index, str) else range(len(self))[index]
        if isinstance(position, range):
            return [self[number] for number in position]
        with self._reading():
            return self._checked(self._reader.read(position))

    def __iter__(self) -> Iterator[SentenceVectors]:
        with self._reading():
            sentences = iter(self._reader)
        while True:
            with self._reading():
                if (sentence := next(sentences, None)) is None:
                    return
                checked = self._checked(sentence)
            yield checked

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {str(self.path)!r}: {counted(len(self), 'sentence')}>"

    def __enter__(self) -> "VectorSequence":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def texts(self) -> dict[int, str]:
        """Return the lines by number, where the format keeps them (AllenNLP: all in memory)."""
        with self._reading():
            return self._reader.texts() if hasattr(self._reader, "texts") else {}

    def close(self) -> None:
        """Close the file; nothing can be read from it any more."""
        self._is_closed = True
        self._opened.close()

    def _checked(self, sentence: tuple[list[str] | None, np.ndarray]) -> SentenceVectors:
        tokens, vectors = sentence
        is_pooled = self.metadata.get("pool") is not None
        dims = (1, 2) if is_pooled else (1, 2, 3) if self._is_foreign else (2, 3)
        if vectors.ndim not in dims or vectors.dtype.kind != "f":
            raise ValueError(f"vectors of shape {vectors.shape} and type {vectors.dtype}")
        if tokens is not None and not is_pooled and len(tokens) != vectors.shape[-2]:
            raise ValueError(f"{len(tokens)} words, but vectors of shape {vectors.shape}")
        return SentenceVectors(tokens, vectors)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Refuse a closed file; turn errors of libraries about a damaged one into `FormatError`."""
        if self._is_closed:
            raise ValueError(f"{self.path} is closed: read before `close()`, or open it again.")
        what, advice = "damaged, or not a file of word vectors", READ_ADVICE
        if self._is_foreign:
            what, advice = "not word vectors that elmokit can read", _FOREIGN_ADVICE
        with damage(self.path, advice, what=what):
            yield


def open_vectors(path: str | os.PathLike[str]) -> VectorSequence:
    """Open an embedding file: Parquet of elmokit, HDF5 or NPZ of elmokit or other programs.

    Other programs' files hold an array of one to three dimensions per sentence, under a number or
    another key, such as the sentence itself (ELMoForManyLangs) or an id (SeqVec).

    Memory is allocated for no more than a file can hold. Close the file, or use it in a ``with``
    statement:

        with elmokit.open_vectors("vectors.h5") as sentences:
            for tokens, vectors in sentences:
                ...

    Raises:
        FormatError: if it is damaged, or not a file of word vectors; also while reading.
    """
    chosen = Path(path)
    chosen.open("rb").close()  # system errors name the path here, but not in the libraries
    return VectorSequence(chosen)
