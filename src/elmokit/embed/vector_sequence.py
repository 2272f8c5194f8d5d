"""Embedding files of every format, read back as one sequence of sentences."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np

from elmokit.embed.formats.block import READ_ADVICE
from elmokit.embed.formats.registry import FORMATS, OutputFormat, read_metadata, suffixes
from elmokit.errors import FormatError, InputError
from elmokit.files.damage import damage
from elmokit.files.location import counted


class SentenceVectors(NamedTuple):
    """A sentence of an embedding file."""

    tokens: list[str] | None
    """Its words; None in files of other programs and of elmokit 0.1."""
    vectors: np.ndarray
    """(L, W, 2D), or (W, 2D) if the file holds one layer; in the data type of the file. Of a file
    of pooled sentences (L, 2D) or (2D,)."""


class VectorSequence(Sequence):
    """The sentences of an embedding file, in order; see `open_vectors`.

    Positions count the sentences of the file from 0; `line_numbers` says which lines of the text
    they are. Sentences are read when they are asked for: memory holds 8 bytes for each, and of a
    Parquet file some rows (iteration) or one row group (single positions). Not for several threads
    at once.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._is_closed = path, False
        with self._reading():
            self._reader = _format_of(path).module.Reader(path)
        self.line_numbers: np.ndarray = self._reader.indices
        """Line of the text, from 0, of each sentence (S,): not all of them in a shard."""
        self.metadata: dict[str, Any] = {}
        """How the vectors were made; empty in files of other programs."""
        try:
            self.metadata = read_metadata(path, advice=READ_ADVICE)
        except FormatError:
            if not len(self.line_numbers):
                self.close()
                raise

    def __len__(self) -> int:
        return len(self.line_numbers)

    @overload
    def __getitem__(self, index: int) -> SentenceVectors: ...
    @overload
    def __getitem__(self, index: slice) -> list[SentenceVectors]: ...
    def __getitem__(self, index: int | slice) -> SentenceVectors | list[SentenceVectors]:
        """Read a sentence, or those of a slice."""
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(
                f"{self.path} has {counted(len(self), 'sentence')}, and none at {index}."
            )
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
        self._reader.close()

    def _checked(self, sentence: tuple[list[str] | None, np.ndarray]) -> SentenceVectors:
        tokens, vectors = sentence
        is_pooled = self.metadata.get("pool") is not None
        if vectors.ndim + is_pooled not in (2, 3) or vectors.dtype.kind != "f":
            raise ValueError(f"vectors of shape {vectors.shape} and type {vectors.dtype}")
        if tokens is not None and not is_pooled and len(tokens) != vectors.shape[-2]:
            raise ValueError(f"{len(tokens)} words, but vectors of shape {vectors.shape}")
        return SentenceVectors(tokens, vectors)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Refuse a closed file; turn errors of libraries about a damaged one into `FormatError`."""
        if self._is_closed:
            raise ValueError(f"{self.path} is closed: read before `close()`, or open it again.")
        with damage(self.path, READ_ADVICE, what="damaged, or not a file of word vectors"):
            yield


def open_vectors(path: str | os.PathLike[str]) -> VectorSequence:
    """Open an embedding file: HDF5 of elmokit, bilm-tf or AllenNLP, Parquet, or NPZ.

    Memory is allocated for no more than an HDF5 or NPZ file can hold. Of Parquet, only the sizes
    in the metadata are checked: a file made to mislead can take more. Close the file, or use it in
    a ``with`` statement:

        with elmokit.open_vectors("vectors.h5") as sentences:
            for tokens, vectors in sentences:
                ...

    Raises:
        FileNotFoundError: if there is no such file.
        FormatError: if it is damaged, or not a file of word vectors; also while reading.
        InputError: for an unknown suffix.
        MissingExtraError: for Parquet without pyarrow.
        ValueError: if sentences are read after ``close()``.
    """
    chosen = Path(path)
    if not chosen.exists():
        raise FileNotFoundError(
            f"There is no embedding file {chosen}. Check the path; `elmokit embed TEXT -o FILE` "
            "makes one."
        )
    chosen.open("rb").close()  # system errors name the path here, but not in the libraries
    return VectorSequence(chosen)


def _format_of(path: Path) -> OutputFormat:
    """Return a format of the suffix: formats that share one share a reader."""
    found = (one for one in FORMATS if path.suffix.lower() in one.suffixes)
    if (first := next(found, None)) is None:
        raise InputError(f"{path}: the name must end in one of {', '.join(suffixes())}.")
    return first
