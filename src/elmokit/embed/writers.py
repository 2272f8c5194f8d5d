"""Embedding files: HDF5 in three forms, Parquet, NPZ, each written block by block.

Every file holds the facts of the run as JSON under the name ``elmokit``. Sentences are known by
their index, the number of their line in the input, from 0.
"""

import json
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast, get_args, runtime_checkable

import numpy as np

from elmokit.errors import FormatError, InputError, MissingExtraError

FileFormat = Literal["elmokit", "bilm-tf", "allennlp"]
"""Forms of an HDF5 file. All have datasets "0", "1", …; "allennlp" adds ``sentence_to_index``."""
Container = Literal["hdf5", "parquet", "npz"]
"""Kinds of files, known by their suffix."""
FileDtype = Literal["float32", "float16"]
"""How numbers are stored."""

FACTS_KEY = "elmokit"
_CONTAINERS: dict[str, Container] = {
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".parquet": "parquet",
    ".npz": "npz",
}


@dataclass(frozen=True)
class Block:
    """Some finished sentences, in order."""

    indices: list[int]
    """Line numbers, rising."""
    texts: list[str]
    """The lines as they were read."""
    tokens: list[list[str]]
    """The words that the lines became."""
    vectors: list[np.ndarray]
    """(L, W, 2D) or (W, 2D), in the dtype of the file."""


@runtime_checkable
class EmbeddingWriter(Protocol):
    """Writes one embedding file. The file is whole after `close`, and only then."""

    def write(self, block: Block) -> None:
        """Append sentences."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...


def container_of(path: Path, file_format: str) -> Container:
    """Tell from its name what kind of file ``path`` is to be, and whether it can be written here.

    Raises:
        ValueError: for an unknown suffix, an unknown format, or one that only HDF5 has.
        MissingExtraError: for Parquet without pyarrow.
    """
    suffix = path.suffix.lower()
    if suffix not in _CONTAINERS:
        raise InputError(
            f"The output must end in one of {', '.join(_CONTAINERS)}, got {path.name!r}."
        )
    if file_format not in get_args(FileFormat):
        allowed = ", ".join(get_args(FileFormat))
        raise InputError(f"`format` must be one of {allowed}, got {file_format!r}.")
    container = _CONTAINERS[suffix]
    if container != "hdf5" and file_format != "elmokit":
        raise InputError(
            f"Format {file_format!r} exists as HDF5 only; name the output .h5 or .hdf5, "
            f"got {path.name!r}."
        )
    if container == "parquet":
        _pyarrow()
    return container


def open_writer(path: Path, *, container: Container, facts: Mapping[str, Any]) -> EmbeddingWriter:
    """Start an embedding file.

    Args:
        path: The file; replaced if it exists.
        container: Its kind.
        facts: What made the vectors; ``format``, ``layers``, ``num_layers``, ``dim`` and ``dtype``
            determine the file's layout.
    """
    if container == "hdf5":
        return HDF5Writer(path, facts)
    return ParquetWriter(path, facts) if container == "parquet" else NPZWriter(path, facts)


class HDF5Writer:
    """HDF5: a dataset for each sentence, named by its index; facts in an attribute of the root.

    Without compression, as the originals wrote it. The "allennlp" form keeps all lines of text in
    memory for ``sentence_to_index``: where a line is repeated, its last index counts.
    """

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        import h5py

        self._file = h5py.File(path, "w")
        cache = self._file.id.get_mdc_config()  # of the library's own cache: at most 2 MB, not 32
        cache.set_initial_size = True
        cache.initial_size, cache.min_size, cache.max_size = 2**20, 2**20, 2**21
        self._file.id.set_mdc_config(cache)
        self._file.attrs[FACTS_KEY] = json.dumps(facts)
        self._index_of: dict[str, str] | None = {} if facts["format"] == "allennlp" else None

    def write(self, block: Block) -> None:
        """Append sentences."""
        for index, text, vectors in zip(block.indices, block.texts, block.vectors, strict=True):
            self._file.create_dataset(str(index), data=vectors)
            if self._index_of is not None:
                self._index_of[text.strip()] = str(index)

    def close(self) -> None:
        """Finish the file."""
        import h5py

        if self._index_of is not None:
            text = h5py.string_dtype(encoding="utf-8")
            data = self._file.create_dataset("sentence_to_index", (1,), dtype=text)
            data[0] = json.dumps(self._index_of)
        self._file.close()


class ParquetWriter:
    """Parquet: a row for each sentence with ``id``, ``tokens`` and a column for each layer.

    A layer is a list (words) of fixed-size lists (dimensions); the columns are ``layer_0``, … or
    ``top``, ``average``, ``layer_k`` where one was asked for. Facts stand in the schema's metadata.
    """

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        pa, parquet = _pyarrow()
        self._pa = pa
        self._dim = facts["dim"]
        layers = facts["layers"]
        numbers = range(facts["num_layers"]) if layers == "all" else [layers]
        self._columns = [f"layer_{k}" if isinstance(k, int) else k for k in numbers]
        self._stacked = layers == "all"
        value = pa.float16() if facts["dtype"] == "float16" else pa.float32()
        layer = pa.list_(pa.list_(value, self._dim))
        fields = [("id", pa.int64()), ("tokens", pa.list_(pa.string()))]
        fields += [(name, layer) for name in self._columns]
        self._schema = pa.schema(fields, metadata={FACTS_KEY: json.dumps(facts)})
        self._writer = parquet.ParquetWriter(
            path, self._schema, compression="none", use_dictionary=False, write_statistics=False
        )

    def write(self, block: Block) -> None:
        """Append sentences as one row group."""
        pa = self._pa
        tokens = [[word.encode("utf-8", "replace") for word in words] for words in block.tokens]
        arrays = [pa.array(block.indices, pa.int64())]
        arrays.append(pa.array(tokens, pa.list_(pa.binary())).cast(pa.list_(pa.string())))
        lengths = [vectors.shape[-2] for vectors in block.vectors]
        offsets = pa.array(np.cumsum([0, *lengths]), pa.int32())
        for k in range(len(self._columns)):
            layer = [vectors[k] if self._stacked else vectors for vectors in block.vectors]
            values = pa.array(np.concatenate(layer).reshape(-1))
            rows = pa.FixedSizeListArray.from_arrays(values, self._dim)
            arrays.append(pa.ListArray.from_arrays(offsets, rows))
        batch = pa.RecordBatch.from_arrays(
            [a.cast(field.type) for a, field in zip(arrays, self._schema, strict=True)],
            schema=self._schema,
        )
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


class NPZWriter:
    """NumPy's archive: an array for each sentence, named by its index, and the facts.

    The archive's directory is held in memory and at the file's end, about 300 bytes a sentence:
    meant for up to some 100,000 sentences.
    """

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        self._file = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True)
        self._add(FACTS_KEY, np.array(json.dumps(facts)))

    def write(self, block: Block) -> None:
        """Append sentences."""
        for index, vectors in zip(block.indices, block.vectors, strict=True):
            self._add(str(index), vectors)

    def close(self) -> None:
        """Finish the file."""
        self._file.close()

    def _add(self, name: str, array: np.ndarray) -> None:
        # A fixed date: the same vectors give the same file.
        entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
        with self._file.open(entry, "w", force_zip64=True) as file:
            np.lib.format.write_array(file, array, allow_pickle=False)


def write_embeddings(
    path: Path, blocks: Iterable[Block], *, container: Container, facts: Mapping[str, Any]
) -> None:
    """Write a whole embedding file.

    Args:
        path: The file; what is there after an error is of no use.
        blocks: The sentences.
        container: Kind of file.
        facts: What made the vectors.
    """
    writer = open_writer(path, container=container, facts=facts)
    try:
        for block in blocks:
            writer.write(block)
    except BaseException:
        with suppress(Exception):  # the first error is the one to tell
            writer.close()
        raise
    writer.close()


def read_facts(path: Path) -> dict[str, Any]:
    """Read what made an embedding file.

    Raises:
        FormatError: if the file is damaged, or was not written by elmokit.
    """
    readers = {"hdf5": _hdf5_facts, "parquet": _parquet_facts, "npz": _npz_facts}
    container = container_of(path, "elmokit")
    path.open("rb").close()  # a system error names the path here, in the libraries it does not
    try:
        return json.loads(readers[container](path))
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise FormatError(
            f"{path}: not an embedding file of elmokit, or damaged: {error}. Remove it, or write "
            "it anew with --overwrite."
        ) from error


def _hdf5_facts(path: Path) -> str:
    import h5py

    with h5py.File(path, "r") as file:
        return cast(str, file.attrs[FACTS_KEY])


def _parquet_facts(path: Path) -> str:
    _, parquet = _pyarrow()
    return parquet.read_schema(path).metadata[FACTS_KEY.encode()].decode()


def _npz_facts(path: Path) -> str:
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        return file[FACTS_KEY].item()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", extra="arrow") from error
    return pyarrow, parquet
