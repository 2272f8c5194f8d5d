"""Stored parameters as NumPy arrays: checked before allocation, rounded, packed."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from safetensors import safe_open

from elmokit.errors import FormatError, check_choice
from elmokit.files.sources import damage
from elmokit.shapes import Float
from elmokit.weights.locate import CONFIG_NAME

Storage = Literal["float32", "float16", "int8", "int6"]
"""How weights are stored; computation is fp32 (or bf16, int8) after loading in every case."""
SCALE = ".scale"
"""What the name of a tensor's scales adds to the tensor's own name."""
FLOATS = ("F32", "F16", "BF16")
"""Data types of weights, as safetensors names them; fp32 holds every value of all of them."""
_NUMPY_TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "i1"}
_INTEGERS: dict[Storage, tuple[int, int]] = {"int8": (127, 16), "int6": (31, 8)}
"""The largest integer, and the significant bits of a scale."""

# --- reading


class StoredArrays(Mapping[str, np.ndarray]):
    """The arrays of a safetensors file as fp32, made of other types whenever they are asked for.

    The file is memory-mapped; writing to an array does not change it.

    Args:
        path: The file; its matrices may be integers with a scale for each row (`pack`).
        shapes: Names and shapes that it must have; None: any.
        sha256: Its hash; None if it is not known: all values must be finite then.
        config_name: The file beside it that shapes and hash are from.
        advice: Ends the message of an error.

    Raises:
        FormatError: if the file is missing or damaged, or another one.
    """

    def __init__(
        self,
        path: Path,
        *,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        sha256: str | None = None,
        config_name: str = CONFIG_NAME,
        advice: str,
    ) -> None:
        if not path.exists():
            raise FormatError(f"{path} is missing. {advice}")
        path.open("rb").close()  # system errors name the path here, but not in safetensors
        with (
            damage(path, advice, what="not a complete safetensors file"),
            safe_open(path, framework="numpy"),  # checks the header and all that it states
        ):
            mapped = np.memmap(path, np.uint8, mode="c")
            start = 8 + int.from_bytes(mapped[:8].tobytes(), "little")
            self._data, self._header = mapped[start:], json.loads(mapped[8:start].tobytes())
        self.metadata: dict[str, str] = self._header.pop("__metadata__", None) or {}
        self.shapes = {name: tuple(entry["shape"]) for name, entry in self._header.items()}
        """Those of the arrays; scales are none."""
        for name, entry in self._header.items():
            if entry["dtype"] == "I8" and len(entry["shape"]) > 1:
                if self.shapes.pop(name + SCALE, None) != (entry["shape"][0],):
                    raise FormatError(
                        f"{path}: tensor `{name}` is int8, but `{name + SCALE}` is not one scale "
                        f"per row. {advice}"
                    )
            elif entry["dtype"] not in FLOATS:
                raise FormatError(
                    f"{path}: tensor `{name}` is of type {entry['dtype']}, expected "
                    f"{' or '.join(FLOATS)}, or I8 with scales. {advice}"
                )
        if shapes is not None:
            if fault := mismatch(shapes, self.shapes):
                raise FormatError(
                    f"{path}: {fault}. The file and {config_name} are of different models, or "
                    f"damaged. {advice}"
                )
            self.shapes = dict(shapes)  # in this order
        if sha256 is None:  # `pack` has checked the values of others
            for name, array in self.items():
                check_finite(array, name, path)
        elif (actual := hashlib.sha256(mapped.data).hexdigest()) != sha256:
            raise FormatError(
                f"{path}: damaged, of another model, or replaced while it was read: its SHA-256 is "
                f"{actual[:12]}…, but {config_name} says {sha256[:12]}…. {advice}"
            )

    def __getitem__(self, name: str) -> Float[np.ndarray, "..."]:
        if name not in self.shapes:
            raise KeyError(name)
        is_packed = self._header[name]["dtype"] == "I8"
        return _restored(self._stored(name), self._stored(name + SCALE) if is_packed else None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def _stored(self, name: str) -> np.ndarray:
        """Return the numbers of the file, without a copy if NumPy has their type."""
        entry = self._header[name]
        start, end = entry["data_offsets"]
        values = np.asarray(self._data[start:end]).view(_NUMPY_TYPES[entry["dtype"]])
        values = np.require(values.reshape(entry["shape"]), requirements=["ALIGNED"])
        is_bf16 = entry["dtype"] == "BF16"
        return (values.astype(np.uint32) << 16).view(np.float32) if is_bf16 else values


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
