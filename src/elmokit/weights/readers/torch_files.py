"""Tensors saved by ``torch.save``, read without running what a pickle says."""

import zipfile
from pathlib import Path

import torch
from torch import Tensor

from elmokit.errors import FormatError
from elmokit.files.damage import damage
from elmokit.weights.readers import torch_pickle
from elmokit.weights.tensor_files import check_finite

_LEGACY_MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
"""A pickle of the number that the older format begins with."""
_HEAD_BYTES, _NAME_AT = 256, 30
"""Of a zip archive's first record; the length of its name is four bytes before the name."""


def is_torch_file(path: Path) -> bool:
    """Tell whether a file was written by ``torch.save``, in its present or older format."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(_LEGACY_MAGIC):
        return True
    if not head.startswith(b"PK\x03\x04"):
        return False
    name = head[_NAME_AT : _NAME_AT + int.from_bytes(head[_NAME_AT - 4 : _NAME_AT - 2], "little")]
    if name.endswith(b"/data.pkl"):  # usually the first record, which a truncated file has, too
        return True
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("/data.pkl") for name in archive.namelist())
    except Exception:  # a damaged archive raises nearly anything, and is no file of tensors
        return False


def read_state(path: Path) -> dict[str, Tensor]:
    """Read a state dict: floating-point tensors by name, others left out.

    They may be views of each other's values, and are not checked before `plain_tensor`.

    Raises:
        FormatError: if the file is damaged, or holds anything that is not a tensor or a plain
            container.
    """
    advice = (
        "Only tensors and plain containers are read, as of torch.save(model.state_dict(), path). "
        f"It has {path.stat().st_size:,} bytes."
    )
    with damage(path, advice, what="no whole state dict"):
        is_zip = _check_records(path)
        loaded = torch.load(
            path, map_location="cpu", mmap=is_zip, weights_only=False, pickle_module=torch_pickle
        )
    if not isinstance(loaded, dict):
        raise FormatError(f"{path}: expected tensors by name, got {type(loaded).__name__}.")
    return {
        name: tensor
        for name, tensor in loaded.items()
        if isinstance(tensor, Tensor) and tensor.is_floating_point()
    }


def plain_tensor(tensor: Tensor, name: str, path: Path) -> Tensor:
    """Return a tensor of a file as fp32, contiguous, all values finite.

    Raises:
        FormatError: if it is not, or states a shape that it has no data for.
    """
    stored = tensor.untyped_storage().nbytes()
    if tensor.numel() * tensor.element_size() > stored:
        raise FormatError(
            f"{path}: tensor `{name}` of shape {tuple(tensor.shape)} has only {stored:,} bytes."
        )
    tensor = tensor.detach().to(torch.float32).contiguous()
    check_finite(tensor, name, path)
    return tensor


def _check_records(path: Path) -> bool:
    """Tell whether a file is a zip archive, of tensors and no program, and not compressed."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    if any(one.filename.endswith("/constants.pkl") for one in members):
        raise ValueError("a TorchScript program")
    packed = any(one.compress_type != zipfile.ZIP_STORED for one in members)
    if packed or sum(one.file_size for one in members) > path.stat().st_size:
        raise ValueError("its records are compressed, which torch.save never does")
    return True
