"""The compiled kernels of inference (``c/inference.c``)."""

import ctypes
import functools

from elmokit.kernels.build import load_library
from elmokit.kernels.interface import Interface, read_interface
from elmokit.kernels.library import Library


class Kernels(Library):
    """The loaded library."""

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
    """Return the kernels, or None where they cannot be compiled (logged)."""
    library = load_library("inference")
    return None if library is None else Kernels(library, read_interface("inference"))
