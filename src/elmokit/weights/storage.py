"""Number formats of stored weights: fp32, fp16, and integers with one fp32 scale per row.

In int8 and int6, a tensor ``NAME`` of two or more dimensions is stored as bytes, integers from -127
to 127 or from -31 to 31, of the same shape, and ``NAME.scale`` (rows) holds one fp32 number per
index of its first dimension; the weights are their product. Vectors (biases) stay fp32. Scales have
few significant bits, so every product is exact in fp32, and rounding weights that are already
rounded changes nothing. int6 takes fewer bytes only where the file is compressed.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int8
from torch import Tensor, nn

from elmokit.field_checks import check_choice
from elmokit.weights.arrays import SCALE, Storage

_INTEGERS: dict[Storage, tuple[int, int]] = {"int8": (127, 16), "int6": (31, 8)}
"""The largest integer, and the significant bits of a scale."""


def round_to(tensor: Float[Tensor, "..."], storage: Storage) -> Float[Tensor, "..."]:
    """Return the fp32 numbers nearest to ``tensor`` that ``storage`` holds exactly.

    Raises:
        ValueError: if a number is not finite, or too large for the format.
    """
    rounded = tensor
    if check_choice(storage, Storage, name="storage") == "float16":
        rounded = tensor.half().float()
    elif storage in _INTEGERS and tensor.dim() >= 2:
        rounded = _product(*_rows(tensor, storage))
    if storage != "float32" and not torch.isfinite(rounded).all():
        raise ValueError("it has values that are not finite, or too large")
    return rounded


def pack(tensors: Mapping[str, Tensor], storage: Storage) -> dict[str, Tensor]:
    """Turn fp32 parameters into the tensors of a file; they must be rounded to its format."""
    check_choice(storage, Storage, name="storage")
    packed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if storage in _INTEGERS and tensor.dim() >= 2:
            packed[name], packed[name + SCALE] = _rows(tensor, storage)
            restored = _product(packed[name], packed[name + SCALE])
        else:
            packed[name] = tensor.half() if storage == "float16" else tensor
            restored = packed[name].float()
        if not tensor.isfinite().all() or not torch.equal(tensor, restored):
            raise ValueError(
                f"`{name}` has digits that {storage} cannot hold (call round_to({storage!r}) "
                "first), or numbers that are not finite, as after a training that diverged."
            )
    return packed


def unpack(tensor: Tensor, scale: Tensor | None) -> Float[Tensor, "..."]:
    """Return a stored tensor as fp32; ``scale`` belongs to an int8 tensor."""
    return tensor.float() if scale is None else _product(tensor, scale)


def unpack_all(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a file as fp32; undoes `pack`."""
    scaled = {name for name, tensor in stored.items() if tensor.dtype == torch.int8}
    scales = {name + SCALE for name in scaled}
    for name in scaled:
        scale = stored.get(name + SCALE)
        if scale is None or scale.shape != stored[name].shape[:1]:
            raise ValueError(f"`{name}` is int8, but `{name + SCALE}` is not one scale per row")
    return {
        name: unpack(tensor, stored[name + SCALE] if name in scaled else None)
        for name, tensor in stored.items()
        if name not in scales
    }


def round_parameters(module: nn.Module, storage: Storage) -> None:
    """Round all parameters in place to numbers that ``storage`` holds exactly."""
    check_choice(storage, Storage, name="storage")
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            try:
                tensor.copy_(round_to(tensor, storage))
            except ValueError as error:
                message = f"`{name}` cannot be rounded to {storage}: {error}."
                raise ValueError(f"{message} Keep it in float32.") from error


def _rows(tensor: Tensor, storage: Storage) -> tuple[Int8[Tensor, "..."], Float[Tensor, " rows"]]:
    limit, scale_bits = _INTEGERS[storage]
    # scales of few significant bits keep the products exact in fp32
    largest = tensor.abs().flatten(1).amax(1)  # (rows,)
    fraction, exponent = torch.frexp(largest / limit)
    fraction = torch.round(fraction * 2**scale_bits) / 2**scale_bits
    scale = torch.ldexp(fraction, exponent)
    divisor = torch.where(scale > 0, scale, 1.0).view(-1, *[1] * (tensor.dim() - 1))
    integers = torch.round(tensor / divisor).clamp(-limit, limit).to(torch.int8)
    return integers, scale


def _product(integers: Tensor, scale: Tensor) -> Float[Tensor, "..."]:
    return integers.float() * scale.view(-1, *[1] * (integers.dim() - 1))
