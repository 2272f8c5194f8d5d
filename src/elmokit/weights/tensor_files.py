"""Stored tensors of PyTorch, and modules without memory until tensors are assigned."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from elmokit.weights.arrays import FLOATS, read_all


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


def read_tensors(path: Path, *, advice: str, dtypes: Collection[str] = FLOATS) -> dict[str, Tensor]:
    """Read all tensors of a file, memory-mapped, of these types and finite; bf16 as fp32."""
    arrays, _ = read_all(path, advice=advice, dtypes=dtypes)
    return {name: torch.from_numpy(array) for name, array in arrays.items()}
