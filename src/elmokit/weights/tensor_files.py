"""Stored tensors of PyTorch, and modules without memory until tensors are assigned."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from elmokit.weights import arrays
from elmokit.weights.arrays import FLOATS, check_dtype, damaged_tensors
from elmokit.weights.arrays import check_name as check_name


class WithoutStorage(TorchFunctionMode):
    """A context in which new modules get shapes but no memory, until tensors are assigned.

    As ``torch.device("meta")``, but weights are not drawn: on that device drawing would import
    seconds of torch.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Give factories the device, and skip initializers."""
        options = kwargs or {}
        if func in (torch.empty, torch.zeros):
            return func(*args, **options | {"device": "meta"})
        if getattr(func, "__module__", None) == nn.init.__name__:
            return args[0] if args else options["tensor"]
        return func(*args, **options)


def check_finite(tensor: Tensor, name: str, path: Path) -> None:
    """Raise `FormatError` if a tensor holds NaN or an infinite value."""
    if tensor.is_floating_point():
        arrays.check_finite(tensor.float().numpy(), name, path)


def read_tensors(path: Path, *, advice: str, dtypes: Collection[str] = FLOATS) -> dict[str, Tensor]:
    """Read all tensors of a file, memory-mapped, of these types and finite."""
    with damaged_tensors(path, advice), safe_open(path, framework="pt") as file:
        tensors = {}
        for name in file.keys():  # noqa: SIM118 (no mapping)
            check_dtype(file.get_slice(name).get_dtype(), name, path, dtypes)
            tensors[name] = file.get_tensor(name)
            check_finite(tensors[name], name, path)
    return tensors
