"""Number formats of stored weights: fp32, fp16, and integers with one fp32 scale per row.

In int8 and int6, an array ``NAME`` of two or more dimensions is stored as bytes, integers from -127
to 127 or from -31 to 31, of the same shape, and ``NAME.scale`` (rows) holds one fp32 number per
index of its first dimension; the weights are their product. Vectors (biases) stay fp32. Scales have
few significant bits, so every product is exact in fp32, and rounding weights that are already
rounded changes nothing. int6 takes fewer bytes only where the file is compressed.
"""

from collections.abc import Mapping

import numpy as np

from elmokit.field_checks import check_choice
from elmokit.shapes import Float, Int8
from elmokit.weights.arrays import SCALE, Storage

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
