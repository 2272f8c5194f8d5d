"""Stored parameters as NumPy arrays: checked before allocation, rounded, packed."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from safetensors import SafetensorError, safe_open

from elmokit.errors import FormatError, InputError, check_choice
from elmokit.files.sources import refuse_lfs_pointer
from elmokit.shapes import Float, Int8

Storage = Literal["float32", "float16", "int8", "int6"]
"""How weights are stored; computation is fp32 (or bf16, int8) after loading in every case."""
SCALE = ".scale"
"""What the name of a tensor's scales adds to the tensor's own name."""
FLOATS = ("F32", "F16", "BF16")
"""Data types of weights, as safetensors names them; fp32 holds every value of all of them."""
_NUMPY_TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "i1", "I64": "<i8"}


class StoredArrays(Mapping[str, np.ndarray]):
    """Arrays of a memory-mapped file as fp32: those of another type are made whenever asked for.

    Writing to an array does not change the file.
    """

    def __init__(self, mapped: np.ndarray, header: dict[str, Any], names: Collection[str]) -> None:
        self._mapped, self._header, self._names = mapped, header, dict.fromkeys(names)

    def __getitem__(self, name: str) -> Float[np.ndarray, "..."]:
        if name not in self._names:
            raise KeyError(name)
        return _unpacked(self._mapped, self._header, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def check_finite(self, path: Path) -> None:
        """Raise `FormatError` if one holds NaN or an infinite value."""
        for name in self._names:
            if self._header[name]["dtype"] == "I8":  # finite if its largest multiple of a scale is
                scale = _stored(self._mapped, self._header[name + SCALE]).astype(np.float32)
                with np.errstate(over="ignore"):
                    check_finite(128 * scale, name + SCALE, path)
            else:
                check_finite(self[name], name, path)


def read_arrays(
    path: Path, shapes: Mapping[str, tuple[int, ...]], *, sha256: str | None, advice: str
) -> StoredArrays:
    """Read a file of parameters with these names and shapes, and this hash, as fp32."""
    with (
        damaged_tensors(path, advice),
        safe_open(path, framework="numpy") as file,
        path.open("rb") as content,
        ThreadPoolExecutor(1) as pool,
    ):
        _check_header(file, shapes, path, advice)
        mapped, header = _mapped(content)
        content.seek(0)
        # hashed while the arrays are read; a file that replaces this one meanwhile is not read
        digest = pool.submit(hashlib.file_digest, content, "sha256") if sha256 else None
        arrays = StoredArrays(mapped, header, shapes)
        arrays.check_finite(path)
    if digest is not None and digest.result().hexdigest() != sha256:
        raise FormatError(
            f"{path}: damaged, of another model, or replaced while it was read: its SHA-256 is "
            f"not the one in config.json. {advice}"
        )
    return arrays


def read_all(
    path: Path, *, advice: str, dtypes: Collection[str] = FLOATS
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read all tensors of a file, memory-mapped and finite, and its metadata; bf16 as fp32."""
    with (
        damaged_tensors(path, advice),
        safe_open(path, framework="numpy") as file,
        path.open("rb") as content,
    ):
        mapped, header = _mapped(content)
        arrays = {}
        for name in file.keys():  # noqa: SIM118 (no mapping)
            dtype = file.get_slice(name).get_dtype()
            check_dtype(dtype, name, path, dtypes)
            stored = _stored(mapped, header[name])
            arrays[name] = _unpacked(mapped, header, name) if dtype == "BF16" else stored
            if dtype in FLOATS:
                check_finite(arrays[name], name, path)
        return arrays, file.metadata() or {}


def _mapped(content: BinaryIO) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the bytes of a file behind its header, and the header, once its size is checked."""
    size = int.from_bytes(content.read(8), "little")
    header = json.loads(content.read(size))
    return np.memmap(content, np.uint8, mode="c", offset=0)[8 + size :], header


def _check_header(
    file: Any, shapes: Mapping[str, tuple[int, ...]], path: Path, advice: str
) -> None:
    slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    stored = {name: tuple(part.get_shape()) for name, part in slices.items()}
    scaled = [name for name in shapes if name in stored and slices[name].get_dtype() == "I8"]
    expected = dict(shapes) | {name + SCALE: shapes[name][:1] for name in scaled}
    if fault := mismatch(expected, stored):
        raise FormatError(
            f"{path}: {fault}. The file and config.json are of different models, or damaged. "
            f"{advice}"
        )
    for name, shape in expected.items():
        allowed = ("I8",) if name in scaled and len(shape) > 1 else FLOATS
        check_dtype(slices[name].get_dtype(), name, path, allowed)


def _unpacked(mapped: np.ndarray, header: dict[str, Any], name: str) -> np.ndarray:
    """Return a stored array as fp32, without a copy if it is that."""
    values = _stored(mapped, header[name])
    if header[name]["dtype"] == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    if header[name]["dtype"] != "I8":
        return values.astype(np.float32, copy=False)
    scale = _stored(mapped, header[name + SCALE]).astype(np.float32)
    unpacked = values.astype(np.float32)
    unpacked *= scale.reshape(-1, *[1] * (values.ndim - 1))
    return unpacked


def _stored(mapped: np.ndarray, entry: dict[str, Any]) -> np.ndarray:
    # offsets count from the end of the header
    start, end = entry["data_offsets"]
    values = np.asarray(mapped[start:end]).view(_NUMPY_TYPES[entry["dtype"]])
    return np.require(values.reshape(entry["shape"]), requirements=["ALIGNED"])


def check_finite(values: np.ndarray, name: str, path: Path) -> None:
    """Raise `FormatError` if an array holds NaN or an infinite value."""
    if values.size == 0:
        return
    low, high = float(values.min()), float(values.max())  # NaN is passed on
    if not (-np.inf < low and high < np.inf):
        raise FormatError(
            f"{path}: tensor `{name}` of shape {values.shape} has values that are not finite "
            f"({low} to {high}). The file is damaged, or its training diverged."
        )


def check_name(path: Path) -> None:
    """Refuse a path that safetensors could write, but not open."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The path {str(path)!r} is not valid UTF-8, and files of weights cannot be opened "
            "there. Give another one."
        ) from error


@contextmanager
def damaged_tensors(path: Path, advice: str) -> Iterator[None]:
    """Turn what safetensors raises about a damaged file into `FormatError`."""
    try:
        path.open("rb").close()  # system errors name the path here, but not in safetensors
        yield
    except FileNotFoundError as error:
        raise FormatError(f"{path} is missing. {advice}") from error
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        if isinstance(error, FormatError):
            raise
        refuse_lfs_pointer(path)
        raise FormatError(f"{path}: not a complete safetensors file ({error}). {advice}") from error


def check_dtype(dtype: str, name: str, path: Path, allowed: Collection[str] = FLOATS) -> None:
    if dtype not in allowed:
        raise FormatError(
            f"{path}: tensor `{name}` is of type {dtype}, expected {' or '.join(allowed)}."
        )


def mismatch(
    expected: Mapping[str, tuple[int, ...]], stored: Mapping[str, tuple[int, ...]]
) -> str | None:
    """Return the first difference between tensors of a network and of a file, by name and shape."""
    for name in (*expected, *sorted(stored.keys() - expected.keys())):
        if stored.get(name) != expected.get(name):
            return (
                f"tensor `{name}` has shape {stored.get(name, '(it is missing)')}, expected "
                f"{expected.get(name, 'none of this name')}"
            )
    return None


_INTEGERS: dict[Storage, tuple[int, int]] = {"int8": (127, 16), "int6": (31, 8)}
"""The largest integer, and the significant bits of a scale."""


def round_to(array: Float[np.ndarray, "..."], storage: Storage) -> Float[np.ndarray, "..."]:
    """Return the fp32 numbers nearest to ``array`` that ``storage`` holds exactly."""
    rounded = array
    if storage == "float16":
        with np.errstate(over="ignore"):
            rounded = array.astype(np.float16).astype(np.float32)
    elif storage in _INTEGERS and array.ndim >= 2:
        rounded = _product(*_rows(array, storage))
    if storage != "float32" and not np.isfinite(rounded).all():
        raise ValueError("it has values that are not finite, or too large")
    return rounded


def round_all(arrays: Mapping[str, np.ndarray], storage: Storage) -> dict[str, np.ndarray]:
    """Return all parameters rounded to numbers that ``storage`` holds exactly."""
    check_choice(storage, Storage, name="storage")
    rounded = {}
    for name, array in arrays.items():
        try:
            rounded[name] = round_to(array, storage)
        except ValueError as error:
            message = f"`{name}` cannot be rounded to {storage}: {error}."
            raise ValueError(f"{message} Keep it in float32.") from error
    return rounded


def pack(arrays: Mapping[str, np.ndarray], storage: Storage) -> dict[str, np.ndarray]:
    """Turn fp32 parameters into the arrays of a file; they must be rounded to its format."""
    check_choice(storage, Storage, name="storage")
    packed: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if storage in _INTEGERS and array.ndim >= 2:
            packed[name], packed[name + SCALE] = _rows(array, storage)
            restored = _product(packed[name], packed[name + SCALE])
        else:
            with np.errstate(over="ignore"):
                packed[name] = array.astype(np.float16) if storage == "float16" else array
            restored = packed[name].astype(np.float32, copy=False)
        if not np.isfinite(array).all() or not np.array_equal(array, restored):
            raise ValueError(
                f"`{name}` has digits that {storage} cannot hold (call round_to({storage!r}) "
                "first), or numbers that are not finite, as after a training that diverged."
            )
    return packed


def unpack_all(stored: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a file as fp32; undoes `pack`."""
    scaled = {name for name, array in stored.items() if array.dtype == np.int8}
    scales = {name + SCALE for name in scaled}
    for name in scaled:
        scale = stored.get(name + SCALE)
        if scale is None or scale.shape != stored[name].shape[:1]:
            raise ValueError(f"`{name}` is int8, but `{name + SCALE}` is not one scale per row")
    return {
        name: _product(array, stored[name + SCALE])
        if name in scaled
        else array.astype(np.float32, copy=False)
        for name, array in stored.items()
        if name not in scales
    }


def _rows(
    array: np.ndarray, storage: Storage
) -> tuple[Int8[np.ndarray, "..."], Float[np.ndarray, " rows"]]:
    limit, scale_bits = _INTEGERS[storage]
    # scales of few significant bits keep the products exact in fp32
    largest = np.abs(array).reshape(len(array), -1).max(1, initial=0)  # (rows,)
    fraction, exponent = np.frexp(largest / np.float32(limit))
    fraction = np.round(fraction * np.float32(2**scale_bits)) / np.float32(2**scale_bits)
    scale = np.ldexp(fraction, exponent)
    divisor = np.where(scale > 0, scale, np.float32(1)).reshape(-1, *[1] * (array.ndim - 1))
    with np.errstate(invalid="ignore"):  # of numbers that are not finite, which callers look for
        return np.round(array / divisor).clip(-limit, limit).astype(np.int8), scale


def _product(integers: np.ndarray, scale: np.ndarray) -> Float[np.ndarray, "..."]:
    with np.errstate(invalid="ignore"):
        return integers.astype(np.float32) * scale.reshape(-1, *[1] * (integers.ndim - 1))
