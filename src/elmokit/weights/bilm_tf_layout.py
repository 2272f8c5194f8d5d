"""The original's HDF5 layout: name, shape and parameter of every dataset.

Datasets and parameters differ only in the order of their values, so writing undoes reading exactly.
Readers of other software turn their arrays into this layout, too (`elmokit.weights.readers`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from elmokit.bilm.config import BiLMConfig, parameter_shapes

Arrays = Mapping[str, np.ndarray]
Shapes = Mapping[str, tuple[int, ...]]

SOFTMAX_NAMES = ("softmax/W", "softmax/b")
"""The output layer, which the released models keep in a separate file."""


@runtime_checkable
class ArraySource(Protocol):
    """Arrays by the names of the layout, read one by one: an HDF5 file, a checkpoint, a table."""

    path: Path

    @property
    def num_bytes(self) -> int: ...

    def shapes(self) -> dict[str, tuple[int, ...]]: ...

    def dataset(self, name: str) -> Any:
        """Return what `read` takes; None if there is no array of this name."""
        ...

    def read(self, dataset: Any) -> np.ndarray: ...


@dataclass(frozen=True)
class Dataset:
    """One dataset of the HDF5 file and the parameters it holds."""

    name: str
    shape: tuple[int, ...]
    read: Callable[[np.ndarray], dict[str, np.ndarray]]
    """Dataset -> parameters by name."""
    write: Callable[[Arrays], np.ndarray]
    """All parameters -> dataset."""
    alias: str = ""
    """Another name that is read."""


def bilm_layout(config: BiLMConfig) -> Iterator[Dataset]:
    shapes, encoder = parameter_shapes(config), "token_encoder."
    if config.char_cnn is None:
        yield _padded(shapes, "embedding", f"{encoder}embedding.weight")
    else:
        if config.lexicon is not None:  # no file of the original has one, but readers give it so
            yield _padded(shapes, "word_embed", f"{encoder}word_embedding.weight")
        yield _padded(shapes, "char_embed", f"{encoder}char_embedding.weight")
        for i in range(len(config.char_cnn.filters)):
            conv = f"{encoder}convolutions.{i}."
            yield _mapped(shapes, f"CNN/W_cnn_{i}", f"{conv}weight", _kernel_in, _kernel_out)
            yield _mapped(shapes, f"CNN/b_cnn_{i}", f"{conv}bias")
        for k in range(config.char_cnn.num_highway):
            for gate in ("carry", "transform"):
                linear = f"{encoder}highways.{k}.{gate}."
                yield _transposed(shapes, f"CNN_high_{k}/W_{gate}", f"{linear}weight")
                yield _mapped(shapes, f"CNN_high_{k}/b_{gate}", f"{linear}bias")
        if f"{encoder}projection.weight" in shapes:
            yield _transposed(shapes, "CNN_proj/W_proj", f"{encoder}projection.weight")
            yield _mapped(shapes, "CNN_proj/b_proj", f"{encoder}projection.bias")
    for number, direction in enumerate(("forward", "backward")):
        for layer in range(config.lstm.num_layers):
            cell = f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
            # TensorFlow's name of a single layer
            alias = f"RNN_{number}/RNN/LSTMCell/" if config.lstm.num_layers == 1 else cell
            yield from _lstm_layout(shapes, f"{direction}_layers.{layer}.", cell, alias)


def softmax_layout(config: BiLMConfig, num_words: int) -> Iterator[Dataset]:
    shapes = {
        "softmax.weight": (num_words, config.lstm.projection_dim), "softmax.bias": (num_words,),
    }  # fmt: skip
    for name, parameter in zip(SOFTMAX_NAMES, shapes, strict=True):
        yield _mapped(shapes, name, parameter)


def _lstm_layout(shapes: Shapes, prefix: str, cell: str, alias: str) -> Iterator[Dataset]:
    inputs, recurrent = prefix + "input_weight", prefix + "recurrent_weight"
    (num_gates, input_dim), (_, dim) = shapes[inputs], shapes[recurrent]

    # the original has one matrix (input and recurrence, gates); ours are two, transposed
    def kernel_in(array: np.ndarray) -> dict[str, np.ndarray]:
        columns = swap_gates(array, axis=1)
        return {inputs: columns[:input_dim].T, recurrent: columns[input_dim:].T}

    def kernel_out(arrays: Arrays) -> np.ndarray:
        return swap_gates(np.concatenate((arrays[inputs].T, arrays[recurrent].T)), axis=1)

    shape = (input_dim + dim, num_gates)
    yield Dataset(cell + "W_0", shape, kernel_in, kernel_out, alias + "W_0")
    yield _mapped(shapes, cell + "B", prefix + "bias", swap_gates, swap_gates, alias + "B")
    if prefix + "projection_weight" in shapes:
        yield _transposed(shapes, cell + "W_P_0", prefix + "projection_weight", alias + "W_P_0")


def swap_gates(array: np.ndarray, axis: int = 0) -> np.ndarray:
    """Swap the middle two of four blocks: the original's i, g, f, o <-> our i, f, g, o."""
    first, second, third, fourth = np.split(array, 4, axis=axis)
    return np.concatenate((first, third, second, fourth), axis=axis)


def _mapped(
    shapes: Shapes,
    name: str,
    parameter: str,
    read: Callable[[np.ndarray], np.ndarray] = np.asarray,
    write: Callable[[np.ndarray], np.ndarray] = np.asarray,
    alias: str = "",
) -> Dataset:
    shape = write(np.broadcast_to(np.float32(0), shapes[parameter])).shape  # takes no memory
    return Dataset(
        name, shape, lambda array: {parameter: read(array)},
        lambda arrays: write(arrays[parameter]), alias,
    )  # fmt: skip


def _transposed(shapes: Shapes, name: str, parameter: str, alias: str = "") -> Dataset:
    return _mapped(shapes, name, parameter, np.transpose, np.transpose, alias)


def _padded(shapes: Shapes, name: str, parameter: str) -> Dataset:
    """Map to a parameter whose first row is zeros, for padding."""
    return _mapped(
        shapes, name, parameter, lambda rows: np.pad(rows, ((1, 0), (0, 0))), lambda rows: rows[1:]
    )


def _kernel_in(array: np.ndarray) -> np.ndarray:
    return array[0].transpose(2, 1, 0)  # (width, in, out) -> (out, in, width)


def _kernel_out(weight: np.ndarray) -> np.ndarray:
    return weight.transpose(2, 1, 0)[np.newaxis]
