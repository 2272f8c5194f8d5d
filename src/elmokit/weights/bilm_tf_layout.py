"""The original's HDF5 layout: name, shape and parameter of every dataset.

Datasets and parameters differ only in the order of their values, so writing undoes reading exactly.
Readers of other software turn their arrays into this layout, too (`elmokit.weights.readers`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from elmokit.bilm.config import BiLMConfig, CharCNNConfig
from elmokit.bilm.lstm_config import LSTMConfig
from elmokit.text.char_vocab import NUM_RAW_CHARS

Arrays = Mapping[str, np.ndarray]

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
    dim, lstm = config.lstm.projection_dim, config.lstm
    if config.char_cnn is None:
        assert config.num_words is not None
        yield _padded("embedding", (config.num_words, dim), "token_encoder.embedding.weight")
    else:
        yield from _char_cnn_layout(config.char_cnn, config)
    for number, direction in enumerate(("forward", "backward")):
        for layer in range(lstm.num_layers):
            yield from _lstm_layout(lstm, number, layer, f"{direction}_layers.{layer}.")


def softmax_layout(config: BiLMConfig, num_words: int) -> Iterator[Dataset]:
    yield _mapped(SOFTMAX_NAMES[0], (num_words, config.lstm.projection_dim), "softmax.weight")
    yield _mapped(SOFTMAX_NAMES[1], (num_words,), "softmax.bias")


def _char_cnn_layout(cnn: CharCNNConfig, config: BiLMConfig) -> Iterator[Dataset]:
    encoder, dims, dim = "token_encoder.", cnn.embedding_dim, config.lstm.projection_dim
    num_rows, size, lexicon = NUM_RAW_CHARS, cnn.num_filters, config.lexicon
    if lexicon is not None:  # no file of the original has one, but readers give its rows so
        num_rows, size = lexicon.character_rows - 1, cnn.num_filters + lexicon.word_dim
        words = (lexicon.word_rows - 1, lexicon.word_dim)
        yield _padded("word_embed", words, encoder + "word_embedding.weight")
    yield _padded("char_embed", (num_rows, dims), encoder + "char_embedding.weight")
    for i, (width, count) in enumerate(cnn.filters):
        conv = f"{encoder}convolutions.{i}."
        yield _mapped(
            f"CNN/W_cnn_{i}", (1, width, dims, count), conv + "weight", _kernel_in, _kernel_out
        )
        yield _mapped(f"CNN/b_cnn_{i}", (count,), conv + "bias")
    for k in range(cnn.num_highway):
        for gate in ("carry", "transform"):
            linear, square = f"{encoder}highways.{k}.{gate}.", (cnn.num_filters, cnn.num_filters)
            yield _transposed(f"CNN_high_{k}/W_{gate}", square, linear + "weight")
            yield _mapped(f"CNN_high_{k}/b_{gate}", (cnn.num_filters,), linear + "bias")
    if size != dim or lexicon is not None:
        yield _transposed("CNN_proj/W_proj", (size, dim), encoder + "projection.weight")
        yield _mapped("CNN_proj/b_proj", (dim,), encoder + "projection.bias")


def _lstm_layout(lstm: LSTMConfig, number: int, layer: int, prefix: str) -> Iterator[Dataset]:
    cell_dim, dim = lstm.cell_dim, lstm.projection_dim
    root = f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
    # TensorFlow's name of a single layer
    other_root = f"RNN_{number}/RNN/LSTMCell/" if lstm.num_layers == 1 else root
    inputs, recurrent = prefix + "input_weight", prefix + "recurrent_weight"

    # the original has one matrix (input and recurrence, gates); ours are two, transposed
    def kernel_in(array: np.ndarray) -> dict[str, np.ndarray]:
        columns = swap_gates(array, axis=1)
        return {inputs: columns[:dim].T, recurrent: columns[dim:].T}

    def kernel_out(arrays: Arrays) -> np.ndarray:
        return swap_gates(np.concatenate((arrays[inputs].T, arrays[recurrent].T)), axis=1)

    yield Dataset(root + "W_0", (2 * dim, 4 * cell_dim), kernel_in, kernel_out, other_root + "W_0")
    yield _mapped(
        root + "B", (4 * cell_dim,), prefix + "bias", swap_gates, swap_gates, other_root + "B"
    )
    if cell_dim != dim:
        weight = prefix + "projection_weight"
        yield _transposed(root + "W_P_0", (cell_dim, dim), weight, other_root + "W_P_0")


def swap_gates(array: np.ndarray, axis: int = 0) -> np.ndarray:
    """Swap the middle two of four blocks: the original's i, g, f, o <-> our i, f, g, o."""
    first, second, third, fourth = np.split(array, 4, axis=axis)
    return np.concatenate((first, third, second, fourth), axis=axis)


def _mapped(
    name: str,
    shape: tuple[int, ...],
    parameter: str,
    read: Callable[[np.ndarray], np.ndarray] = np.asarray,
    write: Callable[[np.ndarray], np.ndarray] = np.asarray,
    alias: str = "",
) -> Dataset:
    parameters = lambda array: {parameter: read(array)}  # noqa: E731
    return Dataset(name, shape, parameters, lambda arrays: write(arrays[parameter]), alias)


def _transposed(name: str, shape: tuple[int, ...], parameter: str, alias: str = "") -> Dataset:
    return _mapped(name, shape, parameter, np.transpose, np.transpose, alias)


def _padded(name: str, shape: tuple[int, ...], parameter: str) -> Dataset:
    """Map to a parameter whose first row is zeros, for padding."""
    return _mapped(
        name, shape, parameter, lambda array: np.pad(array, ((1, 0), (0, 0))), lambda rows: rows[1:]
    )


def _kernel_in(array: np.ndarray) -> np.ndarray:
    return array[0].transpose(2, 1, 0)  # (width, in, out) -> (out, in, width)


def _kernel_out(weight: np.ndarray) -> np.ndarray:
    return weight.transpose(2, 1, 0)[np.newaxis]
