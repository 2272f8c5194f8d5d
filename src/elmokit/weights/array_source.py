"""Where arrays of the original's layout come from: an HDF5 file, or variables of a checkpoint."""

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class StoredArray(Protocol):
    """An array that has not been read yet."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Its shape; None if it is none."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """Type of its values."""
        ...


@runtime_checkable
class ArraySource(Protocol):
    """Arrays by the names of the original's HDF5 files, as `elmokit.files.hdf5.Hdf5File` has them.

    All methods raise `FormatError` for damage.
    """

    path: Path

    @property
    def num_bytes(self) -> int:
        """Size of the files that hold the arrays."""
        ...

    def __contains__(self, name: str) -> bool:
        """Return whether there is an array, or a group of arrays, of this name."""
        ...

    def dataset(self, name: str) -> StoredArray | None:
        """Return an array; None if there is none of this name."""
        ...

    def read(self, dataset: Any) -> np.ndarray:
        """Read an array that `dataset` returned."""
        ...

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return name and shape of every array."""
        ...
