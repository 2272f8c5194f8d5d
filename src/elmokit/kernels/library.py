"""A loaded kernel library: calls with named arguments, tensors checked against the C types.

Where no library can be had, nothing here is used and PyTorch computes everything.
"""

import ctypes
from ctypes import Structure, byref, c_int64, c_void_p
from typing import Any, Literal

import torch
from torch import Tensor

from elmokit.kernels.interface import Interface

Kind = Literal["fp32", "bf16", "int8"]
"""How a packed matrix holds its values."""

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}
"""The kinds as types of PyTorch."""
_DTYPES_OF_C = {
    "float": torch.float32, "int64_t": torch.int64, "int32_t": torch.int32, "uint8_t": torch.uint8,
}  # fmt: skip


def group_size(kind: Kind) -> int:
    """Return how many values 32 bits hold."""
    return 4 // DTYPES[kind].itemsize


def address(values: Tensor, *, dtype: torch.dtype | None = torch.float32) -> int:
    """Return where values begin that C reads or writes.

    Raises:
        ValueError: if they are not what C takes them for: contiguous, of this type (none: any), on
            the CPU.
    """
    if (
        (dtype is not None and values.dtype != dtype)
        or not values.is_cpu
        or not values.is_contiguous()
    ):
        raise ValueError(
            f"The kernels take contiguous {dtype or 'values'} values on the CPU, got "
            f"{values.dtype} on {values.device}, shape {tuple(values.shape)}, strides "
            f"{values.stride()}."
        )
    return values.data_ptr()


class Library:
    """The functions of a compiled library.

    Args:
        library: Compiled from the source that ``interface`` was read from, and checked.
        interface: Its functions, structures and constants.
    """

    def __init__(self, library: ctypes.CDLL, interface: Interface) -> None:
        self._library, self._interface = library, interface
        for name in interface.functions:
            function = self._function(name)
            function.argtypes, function.restype = (c_void_p, c_int64), None
        self.constants = interface.constants
        self.types = {dtype: self.constants[kind.upper()] for kind, dtype in DTYPES.items()}
        """The numbers of the types in C."""
        self._dtypes = {number: dtype for dtype, number in self.types.items()}
        self.vector_length = self._ask("vector_length")
        self.panel_width = self.constants["NV"] * self.vector_length
        """Columns of a panel of a packed matrix."""
        _share_threads(library)

    def call(self, name: str, **arguments: Any) -> None:
        """Run a kernel on as many threads as PyTorch uses.

        Args:
            name: The function, without ``elmokit_``.
            arguments: Fields of its structure, as for `structure`.
        """
        call = self._filled(self._interface.functions[name], arguments)
        self._function(name)(byref(call), torch.get_num_threads())

    def structure(self, name: str, **fields: Any) -> Structure:
        """Return a structure that is part of a call; fields that are left out are 0 or null.

        Args:
            name: Its name in C.
            fields: Numbers, structures, tensors (which the caller keeps), or addresses (unchecked).
                Values behind a ``void`` pointer have the type that the field ``type`` says.

        Raises:
            ValueError: if a tensor is not what C takes it for.
            AttributeError: if there is no such field.
        """
        return self._filled(self._interface.structures[name], fields)

    def structure_from(self, name: str, config: object) -> Structure:
        """Return a structure of numbers, taken from the attributes of the same names; none is 0."""
        fields = (field for field, *_ in self._interface.structures[name]._fields_)
        return self.structure(name, **{field: getattr(config, field) or 0 for field in fields})

    def array(self, items: list[Any]) -> Any:
        """Return structures of one kind in a row, for a pointer field."""
        kind: Any = type(items[0])
        return (kind * len(items))(*items)

    def _filled(self, structure: type[Structure], fields: dict[str, Any]) -> Structure:
        made, pointed = structure(), self._interface.pointed[structure]
        for name, value in fields.items():
            if isinstance(value, Tensor):
                target = pointed.get(name, "")
                dtype = self._dtypes[fields["type"]] if target == "void" else None
                value = address(value, dtype=dtype or _DTYPES_OF_C.get(target))
            setattr(made, name, value)
        return made

    def _function(self, name: str) -> Any:
        return getattr(self._library, f"elmokit_{name}")

    def _ask(self, name: str) -> int:
        function = self._function(name)
        function.restype = c_int64
        return function()


def _share_threads(library: ctypes.CDLL) -> None:
    """Let kernels run on PyTorch's threads, where its OpenMP runtime has GNU's entry point.

    After parallel work of PyTorch its threads wait busily for more, for milliseconds; other threads
    would have to share the processors with them.
    """
    runtime = ctypes.CDLL(torch._C.__file__)  # symbols of all that it depends on
    names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
    if all(hasattr(runtime, name) for name in names):
        library.elmokit_use_openmp(
            *(ctypes.cast(getattr(runtime, name), c_void_p) for name in names)
        )
