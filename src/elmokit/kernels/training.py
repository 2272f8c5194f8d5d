"""The C kernels of training as functions of tensors.

What large matrix products do not cover: the recurrence of an LSTM, convolutions that remember their
maximum, and passes over rows. Values are fp32 or bf16, as the tensors say; sums are fp32.
No result depends on the number of threads.
"""

import ctypes
import functools
import logging
from ctypes import POINTER, Structure, byref, c_float, c_int64, c_void_p
from dataclasses import dataclass

import torch
from torch import Tensor

from elmokit.kernels.build import load_library
from elmokit.kernels.inference import VECTORS, MatrixArgument, share_threads

log = logging.getLogger(__name__)

TYPES = {torch.float32: 0, torch.bfloat16: 1}
"""The numbers of the types in C."""


def address(values: Tensor, *, dtype: torch.dtype = torch.float32) -> int:
    """Return where values begin that C reads or writes.

    Raises:
        ValueError: if they are not what C takes them for: in a row, of this type, on the CPU.
    """
    if values.dtype != dtype or values.device.type != "cpu" or not values.is_contiguous():
        raise ValueError(
            f"The kernels take contiguous {dtype} values on the CPU, got {values.dtype} on "
            f"{values.device}, shape {tuple(values.shape)}, strides {values.stride()}."
        )
    return values.data_ptr()


def check_ids(ids: Tensor, *, lowest: int, highest: int, what: str) -> None:
    """Refuse ids that C would read outside of a table.

    Args:
        ids: Of any shape.
        lowest: The smallest that is allowed.
        highest: The largest that is allowed.
        what: Their name, in the message.

    Raises:
        ValueError: naming the id that is furthest out.
    """
    if ids.numel() == 0:
        return
    smallest, largest = (int(bound) for bound in ids.aminmax())
    if smallest < lowest or largest > highest:
        raise ValueError(
            f"{what} must be {lowest} to {highest}, got "
            f"{smallest if smallest < lowest else largest}."
        )


class PackCall(Structure):
    """``pack_call``."""

    _fields_ = (
        ("source", c_void_p), ("columns", c_int64), ("inner", c_int64), ("is_transposed", c_int64),
        ("blocks", c_int64), ("to", c_void_p), ("type", c_int64),
    )  # fmt: skip


class LSTMForwardCall(Structure):
    """``lstm_forward``."""

    _fields_ = (
        ("recurrent", MatrixArgument), ("projection", MatrixArgument), ("type", c_int64),
        ("num_steps", c_int64), ("num_rows", c_int64), ("dim", c_int64), ("cell_dim", c_int64),
        ("gates", c_void_p), ("bias", c_void_p), ("cells", c_void_p), ("inners", c_void_p),
        ("hiddens", c_void_p), ("typed_hiddens", c_void_p), ("cell_clip", c_float),
        ("projection_clip", c_float),
    )  # fmt: skip


class LSTMBackwardCall(Structure):
    """``lstm_backward``."""

    _fields_ = (
        ("projection", MatrixArgument), ("recurrent", MatrixArgument), ("type", c_int64),
        ("num_steps", c_int64), ("num_rows", c_int64), ("dim", c_int64), ("cell_dim", c_int64),
        ("gates", c_void_p), ("cells", c_void_p), ("hiddens", c_void_p),
        ("grad_outputs", c_void_p), ("grad_hidden", c_void_p), ("grad_cell", c_void_p),
        ("grad_gates", c_void_p), ("grad_projected", c_void_p), ("cell_clip", c_float),
        ("projection_clip", c_float),
    )  # fmt: skip


class TrainConvolutionArgument(Structure):
    """``train_convolution``."""

    _fields_ = (
        ("m", MatrixArgument), ("weight", c_void_p), ("bias", c_void_p),
        ("grad_weight", c_void_p), ("grad_bias", c_void_p), ("width", c_int64),
        ("count", c_int64), ("first", c_int64),
    )  # fmt: skip


class TrainCharCNNCall(Structure):
    """``cnn_call`` of ``cnn_train.h``."""

    _fields_ = (
        ("convolutions", POINTER(TrainConvolutionArgument)), ("num_convolutions", c_int64),
        ("num_words", c_int64), ("max_characters", c_int64), ("embedding_dim", c_int64),
        ("num_filters", c_int64), ("num_ids", c_int64), ("is_tanh", c_int64), ("type", c_int64),
        ("typed_embedding", c_void_p), ("embedding", c_void_p), ("char_ids", c_void_p),
        ("out", c_void_p), ("positions", c_void_p), ("buffers", c_void_p), ("grad_out", c_void_p),
        ("grad_answers", c_void_p), ("winners", c_void_p), ("characters", c_void_p),
        ("tables", c_void_p), ("grad_embedding", c_void_p),
    )  # fmt: skip


class HighwayCall(Structure):
    """``highway_call``."""

    _fields_ = (
        ("type", c_int64), ("num_rows", c_int64), ("dim", c_int64), ("x", c_void_p),
        ("gate", c_void_p), ("transform", c_void_p), ("gate_bias", c_void_p),
        ("transform_bias", c_void_p), ("out", c_void_p), ("grad_out", c_void_p),
        ("grad_gate", c_void_p), ("grad_transform", c_void_p), ("grad_x", c_void_p),
    )  # fmt: skip


class SoftmaxCall(Structure):
    """``softmax_call``."""

    _fields_ = (
        ("type", c_int64), ("num_rows", c_int64), ("num_candidates", c_int64),
        ("logits", c_void_p), ("bias", c_void_p), ("target_logits", c_void_p), ("hits", c_void_p),
        ("losses", c_void_p), ("target_probs", c_void_p), ("buffers", c_void_p),
    )  # fmt: skip


class SumsCall(Structure):
    """``sums_call``."""

    _fields_ = (
        ("type", c_int64), ("num_rows", c_int64), ("num_columns", c_int64), ("values", c_void_p),
        ("weights", c_void_p), ("out", c_void_p),
    )  # fmt: skip


class ScatterCall(Structure):
    """``scatter_call``."""

    _fields_ = (
        ("num_rows", c_int64), ("dim", c_int64), ("out", c_void_p), ("places", c_void_p),
        ("rows", c_void_p),
    )  # fmt: skip


class TrainingKernels:
    """The loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.elmokit_vector_length.restype = c_int64
        library.elmokit_has_bf16.restype = c_int64
        for name in (
            "pack", "lstm_forward", "lstm_backward", "cnn_forward", "cnn_backward",
            "highway_forward", "highway_backward", "softmax", "column_sums", "scatter_rows",
        ):  # fmt: skip
            function = getattr(library, f"elmokit_{name}")
            function.argtypes, function.restype = (c_void_p, c_int64), None
        share_threads(library)
        self.vector_length: int = library.elmokit_vector_length()
        self.has_bf16 = bool(library.elmokit_has_bf16())
        """Whether this processor multiplies bf16 with instructions of its own."""

    def call(self, name: str, arguments: Structure) -> None:
        """Run a kernel on as many threads as PyTorch uses."""
        getattr(self._library, f"elmokit_{name}")(byref(arguments), torch.get_num_threads())

    def pack(
        self, weight: Tensor, dtype: torch.dtype, *, transposed: bool = False, blocks: int = 1
    ) -> "TrainingMatrix":
        """Pack a matrix for products ``x @ weight.T``, or ``x @ weight`` if ``transposed``.

        Args:
            weight: (N, K) fp32, contiguous.
            dtype: In which it is multiplied.
            transposed: Pack the transpose.
            blocks: Blocks of N whose rows take turns in panels: 4 for the gates of an LSTM.
        """
        columns, inner = reversed(weight.shape) if transposed else weight.shape
        panel = VECTORS * self.vector_length
        num_panels, num_groups = -(-columns // panel), -(-inner // (1 + TYPES[dtype]))
        values = torch.empty(num_panels, num_groups, panel, dtype=torch.int32)
        self.call(
            "pack",
            PackCall(
                address(weight), columns, inner, int(transposed), blocks,
                address(values, dtype=torch.int32), TYPES[dtype],
            ),
        )  # fmt: skip
        return TrainingMatrix(dtype, values)

    def column_sums(self, values: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return the sums over rows, fp32: (X, N), weights (X,) -> (N,)."""
        out = torch.empty(values.shape[1])
        self.call(
            "column_sums",
            SumsCall(
                TYPES[values.dtype], *values.shape, address(values, dtype=values.dtype),
                None if weights is None else address(weights), address(out),
            ),
        )  # fmt: skip
        return out

    def scatter_rows(self, out: Tensor, places: Tensor, rows: Tensor) -> None:
        """Add rows (R, D) to the rows ``places`` (R,) of ``out`` (V, D); places may repeat.

        Raises:
            ValueError: if there is no such row.
        """
        check_ids(places, lowest=0, highest=len(out) - 1, what="rows of the output")
        self.call(
            "scatter_rows",
            ScatterCall(
                *rows.shape, address(out), address(places, dtype=torch.int64), address(rows)
            ),
        )


@dataclass(frozen=True)
class TrainingMatrix:
    """A packed matrix."""

    dtype: torch.dtype
    values: Tensor
    """(panels, groups, panel width), 32 bits each."""

    def argument(self) -> MatrixArgument:
        """Return what C sees of it."""
        num_panels, num_groups, _ = self.values.shape
        return MatrixArgument(
            TYPES[self.dtype], num_panels, num_groups, self.values.data_ptr(), None, None
        )


NO_MATRIX = MatrixArgument(0, 0, 0, None, None, None)
"""Where there is none."""


@functools.cache
def load_training_kernels() -> TrainingKernels | None:
    """Return the kernels, or none where they cannot be compiled (said in the log)."""
    library = load_library("training")
    if library is None:
        return None
    kernels = TrainingKernels(library)
    log.info("training on the CPU uses compiled kernels: fp32%s", ", bf16" * kernels.has_bf16)
    return kernels


def kernels_for(weight: Tensor) -> tuple[TrainingKernels, torch.dtype] | None:
    """Return the kernels and the type to multiply in; none where PyTorch computes.

    That is on other devices than the CPU, for other parameters than fp32, under autocast to a type
    without instructions for it, and where the library cannot be had.

    Args:
        weight: One of the parameters.
    """
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        return None
    is_cast = torch.is_autocast_enabled("cpu")
    dtype = torch.get_autocast_dtype("cpu") if is_cast else torch.float32
    if dtype not in TYPES:
        return None
    kernels = load_training_kernels()
    if kernels is None or (dtype == torch.bfloat16 and not kernels.has_bf16):
        return None
    return kernels, dtype
