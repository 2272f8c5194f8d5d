"""Calls of a loaded kernel library: named arguments, checked arrays, threads.

Arrays are NumPy's, or PyTorch's where training calls. bfloat16, which NumPy does not have, is
uint16 there.
"""

import ctypes
import functools
import os
import sys
from ctypes import Structure, byref, c_int64, c_void_p
from pathlib import Path
from typing import Any, Literal

import numpy as np

from elmokit.kernels.build import Interface, load_library, read_interface

MatrixKind = Literal["fp32", "bf16", "int8"]
"""Type of the values of a packed matrix."""

_NUMPY_TYPES = {
    "float": "float32", "int64_t": "int64", "int32_t": "int32", "uint8_t": "uint8",
}  # fmt: skip
"""By C type of a pointer's values; behind other pointers there may be any."""

_wanted: int | None = None
"""A number of threads that PyTorch has not got yet, since it is not imported."""


def get_num_threads() -> int:
    global _wanted
    torch = _torch()
    if torch is None:
        return _wanted or _default_threads()
    if _wanted is not None:  # set before PyTorch was imported
        torch.set_num_threads(_wanted)
        _wanted = None
    return torch.get_num_threads()


def set_num_threads(number: int) -> None:
    global _wanted
    torch = _torch()
    if torch is None:
        _wanted = number
    else:
        torch.set_num_threads(number)


@functools.cache
def use_one_thread_after_a_fork() -> None:
    """Keep forked processes from waiting for threads of OpenMP, which only their parent has."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=functools.partial(set_num_threads, 1))


def _torch() -> Any:
    """Return PyTorch if somebody has imported it, to the end."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "set_num_threads") else None


@functools.cache
def _default_threads() -> int:
    """Return what PyTorch would take: the usual variables, or the cores that we may use.

    Two hardware threads of a core count once: they share the units that multiply.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        first = os.environ.get(name, "").split(",")[0].strip()
        if first.isdecimal() and int(first) > 0:
            return int(first)
    try:
        numbers = os.sched_getaffinity(0)
        folders = [Path(f"/sys/devices/system/cpu/cpu{number}/topology") for number in numbers]
        return len({(folder / "thread_siblings_list").read_text() for folder in folders})
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def group_size(kind: MatrixKind) -> int:
    return {"fp32": 1, "bf16": 2, "int8": 4}[kind]


def address(values: Any, *, dtype: str | None = "float32") -> int:
    """Return the address of a contiguous CPU array of a type (None: any); else `ValueError`."""
    if isinstance(values, np.ndarray):
        name, is_usable = values.dtype.name, values.flags.c_contiguous
        pointer = values.__array_interface__["data"][0]
    else:
        name = str(values.dtype).removeprefix("torch.")
        is_usable = values.is_cpu and values.is_contiguous()
        pointer = values.data_ptr()
    if not is_usable or dtype not in (None, name):
        raise ValueError(
            f"The kernels take contiguous {dtype or 'arrays'} on the CPU, got {name} of shape "
            f"{tuple(values.shape)}."
        )
    return pointer


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
        self.vector_length = self._ask("vector_length")
        self.panel_width = self.constants["NV"] * self.vector_length
        """Columns of a panel of a packed matrix."""
        _share_threads(library)

    def call(
        self, name: str, fixed: Structure | None = None, /, *, threads: Any = 0, **arguments: Any
    ) -> None:
        """Run ``elmokit_<name>``; ``fixed`` are further arguments, from `arguments`.

        Who sizes buffers by a number of threads passes it on: another thread may change it.
        """
        function, structure = self._calls[name]
        call = structure() if fixed is None else structure.from_buffer_copy(fixed)
        self._fill(call, arguments)
        function(byref(call), threads or get_num_threads())

    def arguments(self, name: str, **arguments: Any) -> Structure:
        """Return some arguments of ``elmokit_<name>``, for many calls; the caller keeps arrays."""
        return self._fill(self._calls[name][1](), arguments)

    def structure(self, name: str, **fields: Any) -> Structure:
        """Build a structure; omitted fields are 0 or null.

        Fields are numbers, structures, arrays (kept alive by the caller), or unchecked addresses.
        Arrays of another type than the field's are refused; ``void`` may be any.
        """
        return self._fill(self._interface.structures[name](), fields)

    def structure_from(self, name: str, config: object) -> Structure:
        """Build a structure of numbers from attributes of the same names; None becomes 0."""
        fields = (field for field, *_ in self._interface.structures[name]._fields_)
        return self.structure(name, **{field: getattr(config, field) or 0 for field in fields})

    def type_of(self, kind: MatrixKind) -> int:
        return self.constants[kind.upper()]

    def array(self, items: list[Any]) -> Any:
        kind: Any = type(items[0])
        return (kind * len(items))(*items)

    def _fill(self, structure: Structure, fields: dict[str, Any]) -> Structure:
        pointed = self._interface.pointed[type(structure)]
        for name, value in fields.items():
            if hasattr(value, "dtype"):
                value = address(value, dtype=_NUMPY_TYPES.get(pointed.get(name, "")))
            setattr(structure, name, value)
        return structure

    def _function(self, name: str) -> Any:
        return getattr(self._library, f"elmokit_{name}")

    def _ask(self, name: str) -> int:
        function = self._function(name)
        function.restype = c_int64
        return function()


class Kernels(Library):
    def __init__(self, library: ctypes.CDLL, interface: Interface) -> None:
        super().__init__(library, interface)
        self.has_matrix_unit = bool(self._ask("has_tiles"))
        """Whether bf16 and int8 products use the processor's matrix unit (AMX)."""
        self.has_quick_bf16 = bool(self._ask("has_quick_bf16"))
        """Whether products in bf16 are faster than in fp32."""
        instructions = self._ask("instructions")
        self.quick_kinds = {"fp32"} | {
            kind for kind in ("bf16", "int8") if instructions >> self.type_of(kind) & 1
        }
        """Kinds for which this processor has multiply instructions."""


@functools.cache
def load_kernels() -> Kernels | None:
    """Return the kernels of inference, or None where they cannot be compiled (logged)."""
    library = load_library("inference")
    return None if library is None else Kernels(library, read_interface("inference"))


def _share_threads(library: ctypes.CDLL) -> None:
    """Let kernels run on PyTorch's threads, if it is there and has GNU's OpenMP."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    # The symbols of its dependencies, whichever OpenMP came with PyTorch, are found through it.
    runtime = ctypes.CDLL(torch._C.__file__)
    names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
    if all(hasattr(runtime, name) for name in names):
        functions = [ctypes.cast(getattr(runtime, name), c_void_p) for name in names]
        library.elmokit_use_openmp(*functions)
