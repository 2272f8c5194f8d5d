"""The original's HDF5 layout: every dataset with its name, its shape and what it is here.

Datasets map to parameters by transposing and reordering alone, so writing undoes reading exactly.
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
"""The output layer: in a file of its own with the released models."""


@dataclass(frozen=True)
class Dataset:
    """One dataset of the HDF5 file and the parameters it stands for."""

    name: str
    shape: tuple[int, ...]
    read: Callable[[np.ndarray], dict[str, np.ndarray]]
    """Dataset -> parameters by name."""
    write: Callable[[Arrays], np.ndarray]
    """All parameters -> dataset."""
    aliases: tuple[str, ...] = ()
    """Other names under which it is found."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names, the one that is written first."""
        return (self.name, *self.aliases)


def bilm_layout(config: BiLMConfig) -> Iterator[Dataset]:
    """List every dataset of a model's weights."""
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
    yield _padded(
        "char_embed", (NUM_RAW_CHARS, cnn.embedding_dim), encoder + "char_embedding.weight"
    )
    for i, (width, count) in enumerate(cnn.filters):
        shape = (1, width, cnn.embedding_dim, count)
        yield _mapped(
            f"CNN/W_cnn_{i}", shape, f"{encoder}convolutions.{i}.weight", _kernel_in, _kernel_out
        )
        yield _same(f"CNN/b_cnn_{i}", (count,), f"{encoder}convolutions.{i}.bias")
    size = cnn.num_filters
    for k in range(cnn.num_highway):
        for gate in ("carry", "transform"):
            linear = f"{encoder}highways.{k}.{gate}."
            yield _mapped(
                f"CNN_high_{k}/W_{gate}",
                (size, size),
                linear + "weight",
                np.transpose,
                np.transpose,
            )
            yield _same(f"CNN_high_{k}/b_{gate}", (size,), linear + "bias")
    if size != dim:
        linear = encoder + "projection."
        yield _mapped("CNN_proj/W_proj", (size, dim), linear + "weight", np.transpose, np.transpose)
        yield _same("CNN_proj/b_proj", (dim,), linear + "bias")


def _lstm_layout(lstm: LSTMConfig, number: int, layer: int, prefix: str) -> Iterator[Dataset]:
    cell_dim, dim = lstm.cell_dim, lstm.projection_dim
    root = f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
    other = (
        f"RNN_{number}/RNN/LSTMCell/" if lstm.num_layers == 1 else None
    )  # as TensorFlow names a single layer

    def aliases(name: str) -> tuple[str, ...]:
        return () if other is None else (other + name,)

    def kernel_in(array: np.ndarray) -> dict[str, np.ndarray]:
        columns = _swap_gates(array, axis=1)
        return {
            prefix + "input_weight": columns[:dim].T,
            prefix + "recurrent_weight": columns[dim:].T,
        }

    def kernel_out(arrays: Arrays) -> np.ndarray:
        rows = (arrays[prefix + "input_weight"].T, arrays[prefix + "recurrent_weight"].T)
        return _swap_gates(np.concatenate(rows), axis=1)

    yield Dataset(root + "W_0", (2 * dim, 4 * cell_dim), kernel_in, kernel_out, aliases("W_0"))
    yield _mapped(
        root + "B", (4 * cell_dim,), prefix + "bias", _swap_gates, _swap_gates, aliases("B")
    )
    if cell_dim != dim:
        weight = prefix + "projection_weight"
        yield _mapped(
            root + "W_P_0", (cell_dim, dim), weight, np.transpose, np.transpose, aliases("W_P_0")
        )


def softmax_layout(config: BiLMConfig, num_words: int) -> Iterator[Dataset]:
    """List the two datasets of the output layer."""
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
    """Map a dataset to one parameter by a function and its inverse."""
    return Dataset(
        name,
        shape,
        lambda array: {parameter: read(array)},
        lambda arrays: write(arrays[parameter]),
        aliases,
    )


def _same(name: str, shape: tuple[int, ...], parameter: str) -> Dataset:
    return _mapped(name, shape, parameter, np.asarray, np.asarray)


def _padded(name: str, shape: tuple[int, ...], parameter: str) -> Dataset:
    """Map to a parameter with a row of zeros, for the padded position, before the others."""
    return _mapped(
        name, shape, parameter, lambda array: np.pad(array, ((1, 0), (0, 0))), lambda rows: rows[1:]
    )


def _kernel_in(array: np.ndarray) -> np.ndarray:
    return array[0].transpose(2, 1, 0)  # (width, in, out) -> (out, in, width)


def _kernel_out(weight: np.ndarray) -> np.ndarray:
    return weight.transpose(2, 1, 0)[np.newaxis]


def _swap_gates(array: np.ndarray, axis: int = 0) -> np.ndarray:
    """Exchange blocks two and three of four: the original's i, g, f, o <-> our i, f, g, o."""
    first, second, third, fourth = np.split(array, 4, axis=axis)
    return np.concatenate((first, third, second, fourth), axis=axis)
