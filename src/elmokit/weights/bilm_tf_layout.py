"""The original's HDF5 layout: name, shape and parameter of every dataset.

Datasets and parameters differ only in the order of their values, so writing undoes reading exactly.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.text.char_vocab import NUM_RAW_CHARS

Arrays = Mapping[str, np.ndarray]

SOFTMAX_NAMES = ("softmax/W", "softmax/b")
"""The output layer, which the released models keep in a separate file."""


@dataclass(frozen=True)
class Dataset:
    """One dataset of the HDF5 file and the parameters it holds."""

    name: str
    shape: tuple[int, ...]
    read: Callable[[np.ndarray], dict[str, np.ndarray]]
    """Dataset -> parameters by name."""
    write: Callable[[Arrays], np.ndarray]
    """All parameters -> dataset."""
    aliases: tuple[str, ...] = ()
    """Other names that are read."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names; the first one is written."""
        return (self.name, *self.aliases)


def bilm_layout(config: BiLMConfig) -> Iterator[Dataset]:
    """List every dataset of the weight file."""
    dim, lstm = config.lstm.projection_dim, config.lstm
    if config.char_cnn is not None:
        yield from _char_cnn_layout(config.char_cnn, dim)
    else:
        assert config.num_words is not None
        yield _padded("embedding", (config.num_words, dim), "token_encoder.embedding.weight")
    for number, direction in enumerate(("forward", "backward")):
        for layer in range(lstm.num_layers):
            yield from _lstm_layout(lstm, number, layer, f"{direction}_layers.{layer}.")


def _char_cnn_layout(cnn: CharCNNConfig, dim: int) -> Iterator[Dataset]:
    encoder = "token_encoder."
    dims = cnn.embedding_dim
    yield _padded("char_embed", (NUM_RAW_CHARS, dims), encoder + "char_embedding.weight")
    for i, (width, count) in enumerate(cnn.filters):
        shape, conv = (1, width, dims, count), f"{encoder}convolutions.{i}."
        yield _mapped(f"CNN/W_cnn_{i}", shape, conv + "weight", _kernel_in, _kernel_out)
        yield _same(f"CNN/b_cnn_{i}", (count,), conv + "bias")
    size = cnn.num_filters
    for k in range(cnn.num_highway):
        for gate in ("carry", "transform"):
            linear = f"{encoder}highways.{k}.{gate}."
            yield _transposed(f"CNN_high_{k}/W_{gate}", (size, size), linear + "weight")
            yield _same(f"CNN_high_{k}/b_{gate}", (size,), linear + "bias")
    if size != dim:
        yield _transposed("CNN_proj/W_proj", (size, dim), encoder + "projection.weight")
        yield _same("CNN_proj/b_proj", (dim,), encoder + "projection.bias")


def _lstm_layout(lstm: LSTMConfig, number: int, layer: int, prefix: str) -> Iterator[Dataset]:
    cell_dim, dim = lstm.cell_dim, lstm.projection_dim
    root = f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
    inputs, recurrent = prefix + "input_weight", prefix + "recurrent_weight"

    def aliases(name: str) -> tuple[str, ...]:  # TensorFlow's name of a single layer
        return (f"RNN_{number}/RNN/LSTMCell/{name}",) if lstm.num_layers == 1 else ()

    def kernel_in(array: np.ndarray) -> dict[str, np.ndarray]:
        columns = _swap_gates(array, axis=1)
        return {inputs: columns[:dim].T, recurrent: columns[dim:].T}

    def kernel_out(arrays: Arrays) -> np.ndarray:
        return _swap_gates(np.concatenate((arrays[inputs].T, arrays[recurrent].T)), axis=1)

    yield Dataset(root + "W_0", (2 * dim, 4 * cell_dim), kernel_in, kernel_out, aliases("W_0"))
    yield _mapped(
        root + "B", (4 * cell_dim,), prefix + "bias", _swap_gates, _swap_gates, aliases("B")
    )
    if cell_dim != dim:
        weight = prefix + "projection_weight"
        yield _transposed(root + "W_P_0", (cell_dim, dim), weight, aliases("W_P_0"))


def softmax_layout(config: BiLMConfig, num_words: int) -> Iterator[Dataset]:
    """List the datasets of the output layer."""
    yield _same(SOFTMAX_NAMES[0], (num_words, config.lstm.projection_dim), "softmax.weight")
    yield _same(SOFTMAX_NAMES[1], (num_words,), "softmax.bias")


def _mapped(
    name: str,
    shape: tuple[int, ...],
    parameter: str,
    read: Callable[[np.ndarray], np.ndarray],
    write: Callable[[np.ndarray], np.ndarray],
    aliases: tuple[str, ...] = (),
) -> Dataset:
    return Dataset(
        name,
        shape,
        lambda array: {parameter: read(array)},
        lambda arrays: write(arrays[parameter]),
        aliases,
    )


def _same(name: str, shape: tuple[int, ...], parameter: str) -> Dataset:
    return _mapped(name, shape, parameter, np.asarray, np.asarray)


def _transposed(
    name: str, shape: tuple[int, ...], parameter: str, aliases: tuple[str, ...] = ()
) -> Dataset:
    return _mapped(name, shape, parameter, np.transpose, np.transpose, aliases)


def _padded(name: str, shape: tuple[int, ...], parameter: str) -> Dataset:
    """Map to a parameter whose first row is zeros, for padding."""
    return _mapped(
        name, shape, parameter, lambda array: np.pad(array, ((1, 0), (0, 0))), lambda rows: rows[1:]
    )


def _kernel_in(array: np.ndarray) -> np.ndarray:
    return array[0].transpose(2, 1, 0)  # (width, in, out) -> (out, in, width)


def _kernel_out(weight: np.ndarray) -> np.ndarray:
    return weight.transpose(2, 1, 0)[np.newaxis]


def _swap_gates(array: np.ndarray, axis: int = 0) -> np.ndarray:
    """Swap the middle two of four blocks: the original's i, g, f, o <-> our i, f, g, o."""
    first, second, third, fourth = np.split(array, 4, axis=axis)
    return np.concatenate((first, third, second, fourth), axis=axis)
