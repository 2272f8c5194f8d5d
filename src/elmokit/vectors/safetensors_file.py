"""Tables of `elmokit distil` as safetensors: vectors, counts, and how they were made.

Tensors: ``vectors`` (V, S), ``counts`` (V), ``mean`` (S) and ``whitening`` (S, S) of what the table
was made from. The file's own metadata hold ``words``, a JSON list in the order of the rows, and
``made_by``, a JSON object.
"""

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from elmokit.files.atomic import atomic_file
from elmokit.files.sources import damage, existing_file
from elmokit.shapes import Float, Integer
from elmokit.vectors.static_vectors import StaticVectors, WordRows

SUFFIX = ".safetensors"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Vectors of words, with what they were made of."""

    words: Sequence[str]
    vectors: Float[np.ndarray, "V S"]
    """Centered, without what dominates, times the weight of the word."""
    counts: Integer[np.ndarray, " V"]
    mean: Float[np.ndarray, " S"]
    whitening: Float[np.ndarray, "S S"]
    made_by: dict[str, Any]

    @property
    def layers(self) -> str:
        return str(self.made_by["layers"])


def recognizes(head: bytes) -> bool:
    """Tell whether a file begins like safetensors: the length of a header, and the header."""
    return head[8:10] == b'{"' and int.from_bytes(head[:8], "little") < 1 << 32


def read(path: Path, only: Collection[str] | None) -> StaticVectors:
    table, rows = read_table(path), WordRows(path, only)
    for word, row in zip(table.words, table.vectors, strict=True):
        if rows.lacks(word):
            rows.add(word, row)
    return rows.vectors(table.vectors.shape[1])


def read_table(path: str | os.PathLike[str]) -> Table:
    file = existing_file(path, what="a table of `elmokit distil`", is_read_twice=True)
    advice = "Write it again with `elmokit distil`."
    with damage(file, advice, what="no table of `elmokit distil`, or damaged"):
        with safe_open(file, framework="numpy") as stored:
            metadata = stored.metadata() or {}
            arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        words, made_by = json.loads(metadata["words"]), json.loads(metadata["made_by"])
        num_words, dim = arrays["vectors"].shape
        table = Table(words=words, made_by=made_by, **arrays)
        shapes = (table.counts.shape, table.mean.shape, table.whitening.shape, len(words))
        if shapes != ((num_words,), (dim,), (dim, dim), num_words) or not table.layers:
            raise ValueError(f"shapes {shapes} for {num_words} words of {dim} numbers")
    return table


def write_table(path: str | os.PathLike[str], table: Table) -> None:
    names = ("vectors", "counts", "mean", "whitening")
    arrays = {name: np.ascontiguousarray(getattr(table, name)) for name in names}
    metadata = {"words": json.dumps(list(table.words)), "made_by": json.dumps(table.made_by)}
    with atomic_file(path) as temp_path:
        save_file(arrays, temp_path, metadata=metadata)
