"""Stored parameters as NumPy arrays: checked before allocation, rounded, packed."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors import safe_open

from elmokit.errors import FormatError, check_choice
from elmokit.files.sources import damage
from elmokit.shapes import Float

Storage = Literal["float32", "float16", "int8", "int6"]
"""How weights are stored; computation is fp32 (or bf16, int8) after loading in every case."""
SCALE = ".scale"
"""What the name of a tensor's scales adds to the tensor's own name."""
FLOATS = ("F32", "F16", "BF16")
"""Data types of weights, as safetensors names them; fp32 holds every value of all of them."""
_NUMPY_TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "i1", "I64": "<i8"}
_INTEGERS: dict[Storage, tuple[int, int]] = {"int8": (127, 16), "int6": (31, 8)}
"""The largest integer, and the significant bits of a scale."""

# --- reading


class StoredArrays(Mapping[str, np.ndarray]):
    """Arrays of a memory-mapped file as fp32: those of another type are made whenever asked for.

    Writing to an array does not change the file.
    """

    def __init__(self, data: np.ndarray, header: dict[str, Any], names: Collection[str]) -> None:
        self._data, self._header, self._names = data, header, dict.fromkeys(names)

    def __getitem__(self, name: str) -> Float[np.ndarray, "..."]:
        if name not in self._names:
            raise KeyError(name)
        return _as_float(self._data, self._header, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def read_arrays(
    path: Path, shapes: Mapping[str, tuple[int, ...]], *, sha256: str | None, advice: str
) -> StoredArrays:
    """Read a file of parameters with these names and shapes, and this hash, as fp32."""
    mapped, data, header = _map(path, advice)
    header.pop("__metadata__", None)
    stored = {name: tuple(entry["shape"]) for name, entry in header.items()}
    integers = {name for name in shapes if header.get(name, {}).get("dtype") == "I8"}
    expected = dict(shapes) | {name + SCALE: shapes[name][:1] for name in integers}
    if fault := mismatch(expected, stored):
        raise FormatError(
            f"{path}: {fault}. The file and config.json are of different models, or damaged. "
            f"{advice}"
        )
    matrices = {name for name in integers if len(shapes[name]) > 1}
    for name in expected:
        _check_dtype(header, name, path, ("I8",) if name in matrices else FLOATS)
    if sha256 is None:  # of older directories; `pack` has checked the values of others
        for name in shapes:
            check_finite(_as_float(data, header, name), name, path)
    elif hashlib.sha256(mapped.data).hexdigest() != sha256:
        raise FormatError(
            f"{path}: damaged, of another model, or replaced while it was read: its SHA-256 is "
            f"not the one in config.json. {advice}"
        )
    return StoredArrays(data, header, shapes)


def read_all(
    path: Path, *, advice: str, dtypes: Collection[str] = FLOATS
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read all tensors of a file, memory-mapped and finite, and its metadata; bf16 as fp32."""
    _, data, header = _map(path, advice)
    metadata, arrays = header.pop("__metadata__", {}), {}
    for name, entry in header.items():
        _check_dtype(header, name, path, dtypes)
        is_bf16 = entry["dtype"] == "BF16"
        arrays[name] = _as_float(data, header, name) if is_bf16 else _stored(data, entry)
        if entry["dtype"] in FLOATS:
            check_finite(arrays[name], name, path)
    return arrays, metadata


def _map(path: Path, advice: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return the bytes of a file, those behind its header, and the header."""
    if not path.exists():
        raise FormatError(f"{path} is missing. {advice}")
    path.open("rb").close()  # system errors name the path here, but not in safetensors
    with (
        damage(path, advice, what="not a complete safetensors file"),
        safe_open(path, framework="numpy"),  # checks the header and all that it states
    ):
        mapped = np.memmap(path, np.uint8, mode="c")
        start = 8 + int.from_bytes(mapped[:8].tobytes(), "little")
        return mapped, mapped[start:], json.loads(mapped[8:start].tobytes())


def _stored(data: np.ndarray, entry: dict[str, Any]) -> np.ndarray:
    start, end = entry["data_offsets"]
    values = np.asarray(data[start:end]).view(_NUMPY_TYPES[entry["dtype"]])
    return np.require(values.reshape(entry["shape"]), requirements=["ALIGNED"])


def _as_float(data: np.ndarray, header: dict[str, Any], name: str) -> np.ndarray:
    """Return a stored array as fp32, without a copy if it is that."""
    values = _stored(data, header[name])
    if header[name]["dtype"] == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    scale = None
    if header[name]["dtype"] == "I8":
        scale = _stored(data, header[name + SCALE]).astype(np.float32)
    return _restored(values, scale)


def _check_dtype(header: dict[str, Any], name: str, path: Path, allowed: Collection[str]) -> None:
    if (dtype := header[name]["dtype"]) not in allowed:
        raise FormatError(
            f"{path}: tensor `{name}` is of type {dtype}, expected {' or '.join(allowed)}."
        )


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


# --- rounding


def round_all(arrays: Mapping[str, np.ndarray], storage: Storage) -> dict[str, np.ndarray]:
    """Return the fp32 numbers nearest to all parameters that ``storage`` holds exactly."""
    check_choice(storage, Storage, name="storage")
    rounded = {name: _restored(*_packed(array, storage)) for name, array in arrays.items()}
    for name, array in rounded.items():
        if storage != "float32" and not np.isfinite(array).all():
            raise ValueError(
                f"`{name}` cannot be rounded to {storage}: it has values that are not finite, or "
                "too large. Keep it in float32."
            )
    return rounded


def pack(arrays: Mapping[str, np.ndarray], storage: Storage) -> dict[str, np.ndarray]:
    """Turn fp32 parameters into the arrays of a file; they must be rounded to its format."""
    check_choice(storage, Storage, name="storage")
    packed: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        packed[name], scale = _packed(array, storage)
        if scale is not None:
            packed[name + SCALE] = scale
        if not np.isfinite(array).all() or not np.array_equal(
            array, _restored(packed[name], scale)
        ):
            raise ValueError(
                f"`{name}` has digits that {storage} cannot hold (call round_to({storage!r}) "
                "first), or numbers that are not finite, as after a training that diverged."
            )
    return packed


def unpack_all(stored: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a file as fp32; undoes `pack`."""
    scales = {name + SCALE for name, array in stored.items() if array.dtype == np.int8}
    unpacked = {}
    for name, array in stored.items():
        scale = stored.get(name + SCALE) if array.dtype == np.int8 else None
        if array.dtype == np.int8 and (scale is None or scale.shape != array.shape[:1]):
            raise ValueError(f"`{name}` is int8, but `{name + SCALE}` is not one scale per row")
        if name not in scales:
            unpacked[name] = _restored(array, scale)
    return unpacked


def _packed(array: np.ndarray, storage: Storage) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the stored values, and the scale of each row if these are integers."""
    if storage == "float16":
        with np.errstate(over="ignore"):
            return array.astype(np.float16), None
    if storage == "float32" or array.ndim < 2:
        return array, None
    limit, scale_bits = _INTEGERS[storage]
    # scales of few significant bits keep the products exact in fp32
    largest = np.abs(array).reshape(len(array), -1).max(1, initial=0)  # (rows,)
    fraction, exponent = np.frexp(largest / np.float32(limit))
    fraction = np.round(fraction * np.float32(2**scale_bits)) / np.float32(2**scale_bits)
    scale = np.ldexp(fraction, exponent)
    divisor = np.where(scale > 0, scale, np.float32(1)).reshape(-1, *[1] * (array.ndim - 1))
    with np.errstate(invalid="ignore"):  # of numbers that are not finite, which callers look for
        return np.round(array / divisor).clip(-limit, limit).astype(np.int8), scale


def _restored(values: np.ndarray, scale: np.ndarray | None) -> Float[np.ndarray, "..."]:
    if scale is None:
        return values.astype(np.float32, copy=False)
    restored = values.astype(np.float32)
    with np.errstate(invalid="ignore"):
        restored *= scale.reshape(-1, *[1] * (values.ndim - 1))
    return restored
