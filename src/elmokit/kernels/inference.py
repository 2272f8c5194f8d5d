"""The compiled kernels of inference, and the arguments that C sees.

The structures mirror those of ``kernels.c`` and ``product.h``, field by field.
"""

import ctypes
import functools
from ctypes import POINTER, Structure, byref, c_float, c_int64, c_void_p
from typing import Literal

import torch

from elmokit.kernels.build import load_library

Kind = Literal["fp32", "bf16", "int8"]
"""How a packed matrix holds its values."""

TYPES: dict[str, int] = {"fp32": 0, "bf16": 1, "int8": 2}
"""The numbers of the kinds in C."""
GROUP: dict[str, int] = {"fp32": 1, "bf16": 2, "int8": 4}
"""Values in 32 bits."""
VECTORS = 4
"""Vectors side by side in a panel: NV of ``product.h``."""
WORDS_TOGETHER = 16
"""Words whose characters a thread holds: as in ``kernels.c``."""
TILE_ROWS = 16
"""Rows that are read at a time: as in ``tiles.h``."""
GATE_ROWS = 256
"""Positions whose input products are made at a time: as in ``kernels.c``."""


def share_threads(library: ctypes.CDLL) -> None:
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


class MatrixArgument(Structure):
    """``matrix``."""

    _fields_ = (
        ("type", c_int64), ("num_panels", c_int64), ("num_groups", c_int64),
        ("values", c_void_p), ("scale", c_void_p), ("offset", c_void_p),
    )  # fmt: skip


class LinearCall(Structure):
    """``linear_call``."""

    _fields_ = (
        ("m", MatrixArgument), ("x", c_void_p), ("bias", c_void_p), ("out", c_void_p),
        ("rows", c_int64), ("inner", c_int64), ("x_stride", c_int64), ("columns", c_int64),
        ("out_stride", c_int64), ("is_highway", c_int64), ("groups", c_void_p),
        ("scales", c_void_p),
    )  # fmt: skip


class ConvolutionArgument(Structure):
    """``convolution``."""

    _fields_ = (
        ("m", MatrixArgument), ("width", c_int64), ("count", c_int64), ("first", c_int64),
        ("bias", c_void_p), ("padding", c_void_p),
    )  # fmt: skip


class CharCNNCall(Structure):
    """``cnn_call``."""

    _fields_ = (
        ("convolutions", POINTER(ConvolutionArgument)), ("num_convolutions", c_int64),
        ("num_words", c_int64), ("max_characters", c_int64), ("embedding_dim", c_int64),
        ("out_stride", c_int64), ("is_tanh", c_int64), ("type", c_int64),
        ("embedding", c_void_p), ("char_ids", c_void_p), ("lengths", c_void_p), ("out", c_void_p),
        ("buffers", c_void_p),
    )  # fmt: skip


class LSTMCall(Structure):
    """``lstm_call``."""

    _fields_ = (
        ("input", MatrixArgument), ("recurrent", MatrixArgument), ("projection", MatrixArgument),
        ("num_steps", c_int64), ("dim", c_int64), ("cell_dim", c_int64), ("num_rows", c_void_p),
        ("x", c_void_p), ("input_dim", c_int64), ("bias", c_void_p), ("x_groups", c_void_p),
        ("x_scales", c_void_p), ("gates", c_void_p), ("gates_rows", c_int64),
        ("residual", c_void_p),
        ("num_sentences", c_int64), ("hidden", c_void_p), ("cell", c_void_p), ("out", c_void_p),
        ("targets", c_void_p), ("hidden_groups", c_void_p), ("inner_groups", c_void_p),
        ("inner_stride", c_int64), ("inner", c_void_p), ("hidden_scales", c_void_p),
        ("inner_scales", c_void_p), ("cell_clip", c_float), ("projection_clip", c_float),
    )  # fmt: skip


class LogSumExpCall(Structure):
    """``logsumexp_call``."""

    _fields_ = (
        ("m", MatrixArgument), ("x", c_void_p), ("bias", c_void_p), ("out", c_void_p),
        ("rows", c_int64), ("inner", c_int64), ("groups", c_void_p), ("scales", c_void_p),
        ("shifts", c_void_p), ("sums", c_void_p),
    )  # fmt: skip


class Kernels:
    """The loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.elmokit_vector_length.restype = c_int64
        library.elmokit_instructions.restype = c_int64
        for name in ("elmokit_linear", "elmokit_char_cnn", "elmokit_lstm", "elmokit_logsumexp"):
            getattr(library, name).argtypes = (c_void_p, c_int64)
            getattr(library, name).restype = None
        self._check_layout()
        share_threads(library)
        self.vector_length: int = library.elmokit_vector_length()
        library.elmokit_has_tiles.restype = c_int64
        self.has_matrix_unit = bool(library.elmokit_has_tiles())
        """Whether products of bf16 and int8 go through the processor's matrix unit (AMX)."""
        instructions = library.elmokit_instructions()
        self.quick_kinds = {"fp32"} | {
            kind for kind in ("bf16", "int8") if instructions >> TYPES[kind] & 1
        }
        """Kinds that this processor multiplies with instructions of their own."""

    def _check_layout(self) -> None:
        """Refuse a library whose structures are not those of this module."""
        structures = (
            MatrixArgument, LinearCall, ConvolutionArgument, CharCNNCall, LSTMCall, LogSumExpCall,
        )  # fmt: skip
        constants = (VECTORS, WORDS_TOGETHER, TILE_ROWS, GATE_ROWS)
        expected = [*map(ctypes.sizeof, structures), *constants]
        found = (c_int64 * len(expected))()
        self._library.elmokit_layout(found)
        assert list(found) == expected, f"kernels.c and kernels.py differ: {list(found)} {expected}"

    def call(self, name: str, arguments: Structure) -> None:
        """Run a kernel on as many threads as PyTorch uses."""
        getattr(self._library, name)(byref(arguments), torch.get_num_threads())


@functools.cache
def load_kernels() -> Kernels | None:
    """Return the kernels, or none where they cannot be compiled (said in the log)."""
    library = load_library("kernels")
    return None if library is None else Kernels(library)
