"""Calls of a loaded kernel library: named arguments, tensors checked against the C types."""

import ctypes
from ctypes import Structure, byref, c_int64, c_void_p
from typing import Any, Literal

import torch
from torch import Tensor

from elmokit.kernels.interface import Interface

Kind = Literal["fp32", "bf16", "int8"]
"""Type of the values of a packed matrix."""

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}
_DTYPES_OF_C = {
    "float": torch.float32, "int64_t": torch.int64, "int32_t": torch.int32, "uint8_t": torch.uint8,
}  # fmt: skip

_TYPED: Any = object()
"""Stands for the type that the field ``type`` names."""


def group_size(kind: Kind) -> int:
    """Return the number of values in 32 bits."""
    return 4 // DTYPES[kind].itemsize


def address(values: Tensor, *, dtype: torch.dtype | None = torch.float32) -> int:
    """Return the address of contiguous CPU values of a type (None: any); else `ValueError`."""
    is_right_type = dtype is None or values.dtype == dtype
    if not (is_right_type and values.is_cpu and values.is_contiguous()):
        raise ValueError(
            f"The kernels take contiguous {dtype or 'values'} values on the CPU, got "
            f"{values.dtype} on {values.device}, shape {tuple(values.shape)}, strides "
            f"{values.stride()}."
        )
    return values.data_ptr()


class Library:
    """A compiled library, checked against its interface."""

    def __init__(self, library: ctypes.CDLL, interface: Interface) -> None:
        self._library, self._interface = library, interface
        self._calls = {}  # name -> function, structure of its arguments
        for name, structure in interface.functions.items():
            function = self._function(name)
            function.argtypes, function.restype = (c_void_p, c_int64), None
            self._calls[name] = function, structure
        self.constants = interface.constants
        self.types = {dtype: self.constants[kind.upper()] for kind, dtype in DTYPES.items()}
        """Type numbers in C."""
        self._dtypes = {number: dtype for dtype, number in self.types.items()}
        self._pointed = {
            structure: {
                field: _TYPED if target == "void" else _DTYPES_OF_C.get(target)
                for field, target in targets.items()
            }
            for structure, targets in interface.pointed.items()
        }
        self.vector_length = self._ask("vector_length")
        self.panel_width = self.constants["NV"] * self.vector_length
        """Columns of a panel of a packed matrix."""
        _share_threads(library)

    def call(self, name: str, fixed: Structure | None = None, /, **arguments: Any) -> None:
        """Run ``elmokit_<name>`` on PyTorch's number of threads; arguments as for `structure`.

        ``fixed`` are further arguments, from `arguments`.
        """
        function, structure = self._calls[name]
        call = structure() if fixed is None else structure.from_buffer_copy(fixed)
        self._fill(call, arguments)
        function(byref(call), torch.get_num_threads())

    def arguments(self, name: str, **arguments: Any) -> Structure:
        """Return some arguments of ``elmokit_<name>``, for many calls; the caller keeps tensors."""
        return self._fill(self._calls[name][1](), arguments)

    def structure(self, name: str, **fields: Any) -> Structure:
        """Build a structure; omitted fields are 0 or null.

        Fields are numbers, structures, tensors (kept alive by the caller), or unchecked addresses.
        The field ``type`` gives the type behind a ``void`` pointer. Tensors of another type than
        the field's are refused.
        """
        return self._fill(self._interface.structures[name](), fields)

    def structure_from(self, name: str, config: object) -> Structure:
        """Build a structure of numbers from attributes of the same names; None becomes 0."""
        fields = (field for field, *_ in self._interface.structures[name]._fields_)
        return self.structure(name, **{field: getattr(config, field) or 0 for field in fields})

    def array(self, items: list[Any]) -> Any:
        """Return a C array of structures, for a pointer field."""
        kind: Any = type(items[0])
        return (kind * len(items))(*items)

    def _fill(self, structure: Structure, fields: dict[str, Any]) -> Structure:
        pointed = self._pointed[type(structure)]
        for name, value in fields.items():
            if isinstance(value, Tensor):
                dtype = pointed.get(name)
                if dtype is _TYPED:
                    dtype = self._dtypes[fields["type"]]
                value = address(value, dtype=dtype)
            setattr(structure, name, value)
        return structure

    def _function(self, name: str) -> Any:
        return getattr(self._library, f"elmokit_{name}")

    def _ask(self, name: str) -> int:
        function = self._function(name)
        function.restype = c_int64
        return function()


def _share_threads(library: ctypes.CDLL) -> None:
    """Let kernels run on PyTorch's threads, where its OpenMP runtime has GNU's entry point.

    PyTorch's threads busy-wait for milliseconds after parallel work and would compete with others.
    """
    # The symbols of its dependencies, whichever OpenMP came with PyTorch, are found through it.
    runtime = ctypes.CDLL(torch._C.__file__)
    names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
    if all(hasattr(runtime, name) for name in names):
        functions = [ctypes.cast(getattr(runtime, name), c_void_p) for name in names]
        library.elmokit_use_openmp(*functions)
