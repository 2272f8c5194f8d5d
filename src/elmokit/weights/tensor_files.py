"""Stored tensors: read with nothing allocated before their sizes are known, and checked."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from elmokit.errors import FormatError, InputError
from elmokit.files.damage import refuse_lfs_pointer

FLOATS = ("F32", "F16", "BF16")
"""Data types of weights, as safetensors names them; fp32 holds every value of all of them."""


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
    if tensor.numel() == 0 or not tensor.is_floating_point():
        return
    low, high = (float(value) for value in tensor.aminmax())  # one pass; NaN is passed on
    if not (-torch.inf < low and high < torch.inf):
        raise FormatError(
            f"{path}: tensor `{name}` of shape {tuple(tensor.shape)} has values that are not "
            f"finite ({low} to {high}). The file is damaged, or its training diverged."
        )


def check_name(path: Path) -> None:
    """Refuse a path that safetensors could write, but not open."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The path {str(path)!r} is not valid UTF-8, and files of weights cannot be opened "
            "there. Give another one."
        ) from error


@contextmanager
def damaged_tensors(path: Path, advice: str) -> Iterator[None]:
    """Turn what safetensors raises about a damaged file into `FormatError`."""
    try:
        path.open("rb").close()  # system errors name the path here, but not in safetensors
        yield
    except FileNotFoundError as error:
        raise FormatError(f"{path} is missing. {advice}") from error
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        if isinstance(error, FormatError):
            raise
        refuse_lfs_pointer(path)
        raise FormatError(f"{path}: not a complete safetensors file ({error}). {advice}") from error


def read_tensors(path: Path, *, advice: str, dtypes: Collection[str] = FLOATS) -> dict[str, Tensor]:
    """Read all tensors of a file, memory-mapped, of these types and finite."""
    with damaged_tensors(path, advice), safe_open(path, framework="pt") as file:
        tensors = {}
        for name in file.keys():  # noqa: SIM118 (no mapping)
            check_dtype(file.get_slice(name).get_dtype(), name, path, dtypes)
            tensors[name] = file.get_tensor(name)
            check_finite(tensors[name], name, path)
    return tensors


def check_dtype(found: str, name: str, path: Path, allowed: Collection[str] = FLOATS) -> None:
    """Raise `FormatError` if a tensor is not of one of the allowed types."""
    if found not in allowed:
        raise FormatError(
            f"{path}: tensor `{name}` is of type {found}, expected {' or '.join(allowed)}."
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
