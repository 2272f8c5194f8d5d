"""Tensors saved by ``torch.save``, read without running what a pickle says."""

import pickle
import re
import zipfile
from pathlib import Path

import torch
from torch import Tensor

from elmokit.errors import FormatError
from elmokit.files.damage import damage
from elmokit.weights.tensor_files import check_finite

_LEGACY_MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
"""A pickle of the number that the older format begins with."""
_HEAD_BYTES, _NAME_AT = 256, 30
"""Of a zip archive's first record; the length of its name is four bytes before the name."""
_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


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
    """Read a state dict: fp32 tensors by name, all finite, others left out.

    Raises:
        FormatError: if the file is damaged, holds anything that is not a tensor or a plain
            container, or a tensor without the data for its shape.
    """
    _check_records(path)
    advice = f"Only tensors and plain containers are read. It has {path.stat().st_size:,} bytes."
    try:
        with damage(path, advice, what="no whole state dict"):
            loaded = _load(path)
    except MemoryError as error:
        raise FormatError(f"{path}: states more data than there is memory. {advice}") from error
    if not isinstance(loaded, dict):
        raise FormatError(f"{path}: expected tensors by name, got {type(loaded).__name__}.")
    return {
        name: _checked(tensor, name, path)
        for name, tensor in loaded.items()
        if isinstance(name, str) and isinstance(tensor, Tensor) and tensor.is_floating_point()
    }


def _load(path: Path) -> object:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:  # whose text recommends to run the pickle after all
        called = re.search(r"GLOBAL (\S+)", str(error))
        if called is None:
            raise ValueError("its pickle is damaged") from error
        raise FormatError(
            f"{path}: its pickle wants to call `{called[1]}`. Nothing in a file is run, so it is "
            "not read; save only tensors: torch.save(model.state_dict(), path)."
        ) from error


def _check_records(path: Path) -> None:
    """Refuse compressed records, which `torch.load` would unpack to any size."""
    with damage(path, "Fetch it again."):
        if not zipfile.is_zipfile(path):
            return
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    packed = any(one.compress_type != zipfile.ZIP_STORED for one in members)
    if packed or sum(one.file_size for one in members) > path.stat().st_size:
        raise FormatError(f"{path}: its records are compressed, which torch.save never does.")


def _checked(tensor: Tensor, name: str, path: Path) -> Tensor:
    tensor = tensor.detach()
    if tensor.layout != torch.strided or tensor.dtype not in _FLOATS:
        found = f"{tensor.dtype}, {tensor.layout}"
        raise FormatError(f"{path}: tensor `{name}` is {found}; expected float32.")
    stored = tensor.untyped_storage().nbytes()
    if tensor.numel() * tensor.element_size() > stored:
        raise FormatError(
            f"{path}: tensor `{name}` of shape {tuple(tensor.shape)} has only {stored:,} bytes."
        )
    tensor = tensor.to(torch.float32).contiguous()
    check_finite(tensor, name, path)
    return tensor
