"""Tensors saved by ``torch.save``, read one at a time without running what a pickle says."""

import io
import math
import mmap
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from elmokit.errors import FormatError
from elmokit.files.damage import damage
from elmokit.weights.readers.torch_pickle import PickledName, read_pickle
from elmokit.weights.tensor_files import check_finite

_LEGACY_MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
"""A pickle of the number that the older format begins with."""
_HEAD_BYTES, _NAME_AT = 256, 30
"""Of a zip archive's first record; the length of its name is four bytes before the name."""
_PICKLE_NAME = "/data.pkl"
_DTYPES = {
    "FloatStorage": torch.float32, "DoubleStorage": torch.float64, "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16, "LongStorage": torch.int64, "IntStorage": torch.int32,
    "ShortStorage": torch.int16, "CharStorage": torch.int8, "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool, "ComplexFloatStorage": torch.complex64,
    "ComplexDoubleStorage": torch.complex128,
}  # fmt: skip


@dataclass(frozen=True)
class _Storage:
    """Values in a row, of one tensor or of several."""

    key: str
    dtype: torch.dtype
    num_values: int

    @property
    def num_bytes(self) -> int:
        return self.num_values * self.dtype.itemsize


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor is: a view of a storage."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def num_values(self) -> int:
        """How many values the tensor has."""
        return math.prod(self.shape)

    @property
    def end(self) -> int:
        """The position behind its last value in the storage."""
        steps = (step * (size - 1) for size, step in zip(self.shape, self.stride, strict=True))
        return self.offset + sum(steps) + 1 if self.num_values else self.offset


def is_torch_file(path: Path) -> bool:
    """Tell whether a file was written by ``torch.save``, in its present or older format."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(_LEGACY_MAGIC):
        return True
    if not head.startswith(b"PK\x03\x04"):
        return False
    name = head[_NAME_AT : _NAME_AT + int.from_bytes(head[_NAME_AT - 4 : _NAME_AT - 2], "little")]
    if name.endswith(
        _PICKLE_NAME.encode()
    ):  # usually the first record, which a truncated file has, too
        return True
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith(_PICKLE_NAME) for name in archive.namelist())
    except Exception:  # a damaged archive raises nearly anything, and is no file of tensors
        return False


class TorchState:
    """The floating-point tensors of a state dict by name; none is read before it is asked for.

    Raises:
        FormatError: if the file is damaged, calls anything but what makes tensors and plain
            containers, or has a tensor without the data for its shape; and in `read`.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.num_bytes = path, path.stat().st_size
        self._starts: dict[str, int] = {}
        """Where the values of a storage begin, by its key."""
        advice = f"Only tensors and plain containers are read. It has {self.num_bytes:,} bytes."
        with damage(path, advice, what="no whole state dict"), path.open("rb") as file:
            is_legacy = file.read(len(_LEGACY_MAGIC)) == _LEGACY_MAGIC
            state = self._legacy(file) if is_legacy else self._archived(file)
        if not isinstance(state, dict):
            raise FormatError(f"{path}: expected tensors by name, got {type(state).__name__}.")
        self.tensors = {
            name: stored
            for name, stored in state.items()
            if isinstance(stored, StoredTensor) and stored.storage.dtype.is_floating_point
        }
        for name, stored in self.tensors.items():
            if max(stored.end, stored.num_values) > stored.storage.num_values:
                raise FormatError(
                    f"{path}: tensor `{name[:200]}` of shape {stored.shape} has only "
                    f"{stored.storage.num_bytes:,} bytes."
                )

    def read(self, name: str) -> Tensor:
        """Read a tensor that has values, as fp32; all of them are finite."""
        stored = self.tensors[name]
        dtype = stored.storage.dtype
        values = bytearray((stored.end - stored.offset) * dtype.itemsize)
        with self.path.open("rb") as file:
            file.seek(self._starts[stored.storage.key] + stored.offset * dtype.itemsize)
            if file.readinto(values) != len(values):
                raise FormatError(f"{self.path}: truncated: it ends within tensor `{name}`.")
        view = torch.frombuffer(values, dtype=dtype).as_strided(stored.shape, stored.stride)
        tensor = view.to(torch.float32).contiguous()
        check_finite(tensor, name, self.path)
        return tensor

    def _archived(self, file: BinaryIO) -> Any:
        """Read the present format: a zip archive of a pickle, and a member for every storage."""
        with zipfile.ZipFile(file) as archive:
            members = {member.filename: member for member in archive.infolist()}
            packed = any(one.compress_type != zipfile.ZIP_STORED for one in members.values())
            if packed or sum(one.file_size for one in members.values()) > self.num_bytes:
                raise ValueError("its records are compressed, which torch.save never does")
            pickle_name = next(name for name in members if name.endswith(_PICKLE_NAME))
            root = pickle_name.removesuffix(_PICKLE_NAME)
            order = f"{root}/byteorder"
            if order in members and archive.read(order) != b"little":
                raise ValueError("it is of a big-endian machine")

            def storage(*persistent_id: Any) -> _Storage:
                described = _storage(*persistent_id)
                member = members[f"{root}/data/{described.key}"]
                file.seek(member.header_offset + _NAME_AT - 4)
                lengths = struct.unpack("<HH", file.read(4))
                self._starts[described.key] = member.header_offset + _NAME_AT + sum(lengths)
                if member.file_size < described.num_bytes:
                    raise ValueError(f"the storage {described.key[:40]!r} is cut off")
                return described

            return read_pickle(io.BytesIO(archive.read(pickle_name)), storage, _FUNCTIONS)

    def _legacy(self, file: BinaryIO) -> Any:
        """Read the older format: pickles, the keys of the storages, then these one by one."""
        storages: dict[str, _Storage] = {}

        def storage(*persistent_id: Any) -> _Storage:
            described = _storage(*persistent_id)
            if storages.setdefault(described.key, described) != described:
                raise ValueError(f"the storage {described.key[:40]!r} has two types or sizes")
            return described

        # a map allocates nothing for lengths that are stated
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as stream:
            stream.seek(len(_LEGACY_MAGIC))
            _version, system, state, keys = (
                read_pickle(stream, storage, _FUNCTIONS) for _ in range(4)
            )
            if not system["little_endian"]:
                raise ValueError("it is of a big-endian machine")
            for key in keys:
                (count,) = struct.unpack("<q", stream.read(8))
                if count != storages[key].num_values:
                    raise ValueError(f"the storage {key[:40]!r} has {count:,} values")
                self._starts[key] = stream.tell()
                stream.seek(storages[key].num_bytes, io.SEEK_CUR)  # an error beyond the end
        return state


def _storage(
    kind: str, name: PickledName, key: str, _device: str, num_values: int, *view: Any
) -> _Storage:
    """Return the storage that a pickle means by its "persistent id"."""
    if kind != "storage" or any(view) or num_values < 0:
        raise ValueError("its pickle holds something else than whole storages")
    return _Storage(key, _DTYPES[name.name.rpartition(".")[2]], num_values)


def _tensor(storage: _Storage, offset: int, shape: Any, stride: Any, *_: Any) -> StoredTensor:
    numbers = (offset, *shape, *stride)
    if len(shape) != len(stride) or any(type(one) is not int or one < 0 for one in numbers):
        raise ValueError("a tensor has an impossible shape")
    return StoredTensor(storage, offset, tuple(shape), tuple(stride))


_FUNCTIONS = {
    "collections.OrderedDict": lambda pairs=(): {
        key: value for key, value in pairs if isinstance(key, str)
    },
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_parameter": lambda tensor, *_: tensor,
    "torch._utils._rebuild_parameter_with_state": lambda tensor, *_: tensor,
}
