"""Tensors saved by ``torch.save``, read without running what a pickle says.

PyTorch's own reader of weights builds them. Before, `_check_pickle` refuses what that reader would
walk for ever, such as a dictionary key of tuples of tuples, and all that no state dict names.
"""

import pickletools
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, _weights_only_unpickler

from elmokit.bilm.config import FORGET_OFFSET, MAX_LAYERS
from elmokit.errors import FormatError
from elmokit.files.lines import check_growth
from elmokit.files.sources import damage
from elmokit.weights.arrays import check_finite
from elmokit.weights.bilm_tf_layout import swap_gates

MAX_OPCODES = 1_000_000
"""Some 25,000 tensors; a model has hundreds."""
_MAX_SHARED = 8
"""Containers that are named again: the states of optimizers share some pairs of numbers."""
_LEAVES = {
    "GLOBAL", "BINUNICODE", "SHORT_BINSTRING", "BINFLOAT", "BININT", "BININT1", "BININT2", "LONG1",
    "NONE", "NEWTRUE", "NEWFALSE", "BINPERSID", "BINGET", "LONG_BINGET",
}  # fmt: skip
"""Opcodes that make no container of other values."""
_NAMES = {
    "collections OrderedDict", "torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_parameter", "torch._utils _rebuild_parameter_with_state",
}  # fmt: skip


def read_state(path: Path) -> dict[str, Tensor]:
    """Read a state dict: floating-point tensors by name, others left out.

    They may be views of each other's values, and are not checked before `TorchArrays.take`.
    """
    advice = (
        "Only tensors and plain containers are read, as of torch.save(model.state_dict(), path). "
        f"It has {path.stat().st_size:,} bytes."
    )
    with damage(path, advice, what="no whole state dict"):
        is_zip = _check_records(path)
        loaded = torch.load(
            path, map_location="cpu", mmap=is_zip, weights_only=False,
            pickle_module=sys.modules[__name__],
        )  # fmt: skip
    if not isinstance(loaded, dict):
        raise FormatError(f"{path}: expected tensors by name, got {type(loaded).__name__}.")
    return {
        name: tensor
        for name, tensor in loaded.items()
        if isinstance(name, str) and isinstance(tensor, Tensor) and tensor.is_floating_point()
    }


def _check_records(path: Path) -> bool:
    """Tell whether a file is a zip archive, of tensors and no program, and not compressed."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    if any(member.filename.endswith("/constants.pkl") for member in members):
        raise ValueError("a TorchScript program")
    packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
    if packed or sum(member.file_size for member in members) > path.stat().st_size:
        raise ValueError("its records are compressed, which torch.save never does")
    return True


def load(file: Any, **_: Any) -> Any:
    """Read one pickle, as `pickle.load` does."""
    return Unpickler(file).load()


class Unpickler(_weights_only_unpickler.Unpickler):
    """Stands for `pickle.Unpickler` in `torch.load`."""

    def __init__(self, file: Any, **_: Any) -> None:
        super().__init__(file, encoding="utf-8")
        self._file = file

    def load(self) -> Any:
        start = self._file.tell()
        _check_pickle(self._file)
        self._file.seek(start)
        return super().load()


def _check_pickle(file: Any) -> None:
    """Raise `ValueError` for a pickle that no state dict has, or that takes for ever.

    What is made must be nearly a tree: pairs of the same pair, of … are few bytes.
    """
    containers: set[int] = set()
    last, num_shared = "", 0
    argument: Any
    for number, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        if opcode.name == "GLOBAL" and argument not in _NAMES:
            module, _, name = argument.partition(" ")
            if module != "torch" or not name.endswith("Storage"):
                called = f"{module}.{name}"[:200]
                raise ValueError(f"its pickle wants to call `{called}`, but nothing is run")
        if opcode.name in ("BINPUT", "LONG_BINPUT"):
            (containers.discard if last in _LEAVES else containers.add)(argument)
            continue
        is_shared = opcode.name in ("BINGET", "LONG_BINGET") and argument in containers
        num_shared += is_shared
        if number >= MAX_OPCODES or num_shared > _MAX_SHARED:
            raise ValueError(
                f"its pickle has over {MAX_OPCODES:,} opcodes, or names over {_MAX_SHARED} "
                "containers twice, which no state dict does"
            )
        last = "" if is_shared else opcode.name


class TorchArrays:
    """An `ArraySource` of the tensors below a prefix of a state dict.

    `take` takes tensors out, `add` gives arrays the original's names, and `add_bilm` does so with
    all that are left of a biLM but its embeddings.
    """

    def __init__(self, state: Mapping[str, Tensor], prefix: str, path: Path) -> None:
        self.path, self.prefix = path, prefix
        self._arrays: dict[str, np.ndarray] = {}
        self._left = {
            name.removeprefix(prefix): tensor
            for name, tensor in state.items()
            if name.startswith(prefix)
        }
        storages = (tensor.untyped_storage() for tensor in state.values())
        # tensors may be views of one storage, which counts once
        self.num_bytes = sum({part.data_ptr(): part.nbytes() for part in storages}.values())
        self._num_taken = 0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: array.shape for name, array in self._arrays.items()}

    def dataset(self, name: str) -> np.ndarray | None:
        return self._arrays.get(name)

    def read(self, dataset: np.ndarray) -> np.ndarray:
        return dataset

    def count(self, pattern: str) -> int:
        """Return how many names there are of a pattern with ``{}`` for 0, 1, 2, …."""
        number = 0
        while number <= MAX_LAYERS and pattern.format(number) in self._left:
            number += 1
        return number

    def take(self, name: str, rank: int) -> np.ndarray:
        """Take out a tensor of so many dimensions, as fp32; together they stay in bounds."""
        tensor = self._left.pop(name, None)
        if tensor is None or tensor.dim() != rank or tensor.numel() == 0:
            shape = "is missing" if tensor is None else f"has shape {tuple(tensor.shape)}"
            raise FormatError(
                f"{self.path}: tensor `{self.prefix}{name}` {shape}; expected {rank} dimension(s)."
            )
        # a view can state any shape by steps of 0, without data for it
        self._num_taken += 4 * tensor.numel()
        check_growth(self.path, self._num_taken, self.num_bytes)
        array = tensor.detach().to(torch.float32).contiguous().numpy()
        check_finite(array, self.prefix + name, self.path)
        return array

    def add(self, name: str, array: np.ndarray) -> None:
        self._arrays[name] = array

    def add_bilm(self, *, filters: str, highways: str, projection: str, lstm: str) -> None:
        """Add character CNN and LSTMs, and refuse tensors that have no place in them.

        The arguments are what the parts are called, with ``{}`` for a number; ``lstm`` is the
        prefix of the layers ``forward_layer_{}`` and ``backward_layer_{}``.
        """
        for i in range(self.count(f"{filters}.weight")):
            kernel = self.take(f"{filters.format(i)}.weight", 3)  # (out, in, width)
            self.add(f"CNN/W_cnn_{i}", kernel.transpose(2, 1, 0)[np.newaxis])
            self.add(f"CNN/b_cnn_{i}", self.take(f"{filters.format(i)}.bias", 1))
        for k in range(self.count(f"{highways}.weight")):
            for part, letter, rank in (("weight", "W", 2), ("bias", "b", 1)):
                both = self.take(f"{highways.format(k)}.{part}", rank)
                transform, keep = np.array_split(both, 2)
                # their gate is the share that is kept: 1 - sigmoid(x) = sigmoid(-x)
                self.add(f"CNN_high_{k}/{letter}_transform", transform.T)
                self.add(f"CNN_high_{k}/{letter}_carry", -keep.T)
        self.add("CNN_proj/W_proj", self.take(f"{projection}.weight", 2).T)
        self.add("CNN_proj/b_proj", self.take(f"{projection}.bias", 1))
        for number, direction in enumerate(("forward", "backward")):
            layers = f"{lstm}{direction}_layer_{{}}."
            for layer in range(max(1, self.count(f"{layers}state_projection.weight"))):
                ours = f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
                self._add_lstm(layers.format(layer), ours)
        if self._left:
            raise FormatError(
                f"{self.path}: tensor `{self.prefix}{min(self._left)}` has no place in the biLM "
                "that the other tensors describe."
            )

    def _add_lstm(self, theirs: str, ours: str) -> None:
        inputs = self.take(f"{theirs}input_linearity.weight", 2)
        recurrent = self.take(f"{theirs}state_linearity.weight", 2)
        bias = self.take(f"{theirs}state_linearity.bias", 1)
        if len({len(inputs), len(recurrent), len(bias)}) > 1 or len(bias) % 4:
            raise FormatError(
                f"{self.path}: the tensors `{self.prefix}{theirs}*_linearity.*` do not belong "
                "together: they must have four rows for each cell."
            )
        bias = bias.copy()
        bias[len(bias) // 4 : len(bias) // 2] -= np.float32(FORGET_OFFSET)
        self.add(f"{ours}W_0", swap_gates(np.concatenate((inputs.T, recurrent.T)), axis=1))
        self.add(f"{ours}B", swap_gates(bias))
        self.add(f"{ours}W_P_0", self.take(f"{theirs}state_projection.weight", 2).T)
