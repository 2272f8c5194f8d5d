"""The vectors of annotated words in a temporary file, where any of them can be read."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path

import numpy as np

from elmokit.files.atomic import named, reserve
from elmokit.files.temporary import scratch_directory
from elmokit.probes.occurrences import occurrence_vectors
from elmokit.probes.sense_words import SenseWords
from elmokit.probes.vector_sources import VectorSource


@contextmanager
def vector_table(source: VectorSource, words: SenseWords) -> Iterator[np.ndarray]:
    """Yield a memory-mapped array (S, W, X), float32, with the vectors of the ambiguous words.

    Corpus and test set are each embedded once. The rows of other words are zeros; without
    ambiguous words, X is 0. The file is in the system's folder for temporary files (``TMPDIR``).

    Raises:
        OSError: if the disk has no room for it.
    """
    with scratch_directory("elmokit-senses") as folder:
        table: np.ndarray | None = None
        parts = (words.corpus_rows, words.corpus), (words.test_rows, words.test)
        for rows, sentences in parts:
            for word, vectors in occurrence_vectors(source, sentences, rows):
                if table is None:
                    shape = (len(vectors), len(words), vectors.shape[1])
                    table = _new_table(folder / "vectors", shape)
                table[:, rows[word.name]] = vectors
        yield np.zeros((len(source.names), len(words), 0), "f4") if table is None else table


def _new_table(path: Path, shape: tuple[int, int, int]) -> np.ndarray:
    path.touch()
    with named(path):
        reserve(path, prod(shape) * np.dtype(np.float32).itemsize)
    return np.memmap(path, dtype=np.float32, mode="r+", shape=shape)
