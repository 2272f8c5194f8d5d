"""Parameters of AllenNLP's ELMo and of ELMoForManyLangs, which took over its modules.

Gates are in our order; the forget gate's 1 is inside the bias; a highway's two matrices are one,
and its gate has the other sign. Source: AllenNLP's ``elmo.py``, ``elmo_lstm.py``, ``highway.py``.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from elmokit.bilm.lstmp import FORGET_OFFSET, MAX_LAYERS
from elmokit.errors import FormatError
from elmokit.files.bounded import check_growth
from elmokit.weights.readers.torch_files import plain_tensor

_CNN = "token_encoder."


class TorchParameters:
    """Tensors below a prefix of a state dict, and those of them that got our names.

    Raises:
        FormatError: in `move`, if a tensor is missing or has another rank.
    """

    def __init__(self, state: Mapping[str, Tensor], prefix: str, path: Path) -> None:
        self.path, self.prefix = path, prefix
        self.moved: dict[str, Tensor] = {}
        self._names: dict[str, str] = {}
        """Their names by ours."""
        self._left = {
            name.removeprefix(prefix): one for name, one in state.items() if name.startswith(prefix)
        }
        storages = (tensor.untyped_storage() for tensor in state.values())
        self._num_bytes = 0
        self._num_stored = sum({one.data_ptr(): one.nbytes() for one in storages}.values())

    def count(self, pattern: str) -> int:
        """Return how many names there are of a pattern with ``{}`` for 0, 1, 2, …."""
        number = 0
        while pattern.format(number) in self._left:
            number += 1
            if number > MAX_LAYERS:
                raise FormatError(
                    f"{self.path}: more than {MAX_LAYERS} tensors `{self.prefix}{pattern}`."
                )
        return number

    def take(self, name: str, rank: int) -> Tensor:
        """Take out a tensor of so many dimensions, as fp32; together they stay in bounds."""
        found = self._left.pop(name, None)
        if found is None or found.dim() != rank or found.numel() == 0:
            shape = "is missing" if found is None else f"has shape {tuple(found.shape)}"
            raise FormatError(
                f"{self.path}: tensor `{self.prefix}{name}` {shape}; expected {rank} dimension(s)."
            )
        self._num_bytes += 4 * found.numel()
        check_growth(self.path, self._num_bytes, self._num_stored)
        return plain_tensor(found, self.prefix + name, self.path)

    def move(
        self, name: str, ours: str, rank: int, change: Callable[[Tensor], Tensor] = lambda one: one
    ) -> None:
        """Take out a tensor and give it our name."""
        self.moved[ours] = change(self.take(name, rank)).contiguous()
        self._names[ours] = name

    def move_char_cnn(self, filters: str, highways: str, embedding: str, projection: str) -> None:
        """Move a character CNN; ``filters`` and ``highways`` have ``{}`` for the index."""
        self.move(embedding, f"{_CNN}char_embedding.weight", 2)
        for i in range(self.count(f"{filters}.weight")):
            self.move(f"{filters.format(i)}.weight", f"{_CNN}convolutions.{i}.weight", 3)
            self.move(f"{filters.format(i)}.bias", f"{_CNN}convolutions.{i}.bias", 1)
        for k in range(self.count(f"{highways}.weight")):
            for part, rank in (("weight", 2), ("bias", 1)):
                name, ours = f"{highways.format(k)}.{part}", f"{_CNN}highways.{k}."
                both = self.take(name, rank)
                transform, keep = both.tensor_split(2)  # their gate is the share that is kept
                for gate, values in (("transform", transform), ("carry", -keep)):
                    self.moved[f"{ours}{gate}.{part}"] = values.contiguous()
                    self._names[f"{ours}{gate}.{part}"] = name
        for part, rank in (("weight", 2), ("bias", 1)):
            self.move(f"{projection}.{part}", f"{_CNN}projection.{part}", rank)

    def move_lstm(self, prefix: str = "") -> None:
        """Move both stacks of LSTM layers."""
        pattern = f"{prefix}forward_layer_{{}}.state_projection.weight"
        for direction in ("forward", "backward"):
            for layer in range(max(1, self.count(pattern.replace("forward", direction)))):
                theirs = f"{prefix}{direction}_layer_{layer}."
                ours = f"{direction}_layers.{layer}."
                self.move(f"{theirs}input_linearity.weight", f"{ours}input_weight", 2)
                self.move(f"{theirs}state_linearity.weight", f"{ours}recurrent_weight", 2)
                self.move(f"{theirs}state_linearity.bias", f"{ours}bias", 1, _without_offset)
                self.move(f"{theirs}state_projection.weight", f"{ours}projection_weight", 2)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes from which sizes follow, under the names of the original's files."""
        moved = {name: tuple(one.shape) for name, one in self.moved.items()}
        shapes = {"char_embed": moved[f"{_CNN}char_embedding.weight"]}
        for i in range(sum(f"{_CNN}convolutions.{i}.bias" in moved for i in range(len(moved)))):
            count, dim, width = moved[f"{_CNN}convolutions.{i}.weight"]
            shapes[f"CNN/W_cnn_{i}"] = (1, width, dim, count)
        for k in range(sum(f"{_CNN}highways.{k}.carry.bias" in moved for k in range(len(moved)))):
            shapes[f"CNN_high_{k}/W_carry"] = moved[f"{_CNN}highways.{k}.carry.weight"]
        layers = range(sum(f"forward_layers.{k}.bias" in moved for k in range(len(moved))))
        for layer in layers:
            dim, cell_dim = moved[f"forward_layers.{layer}.projection_weight"]
            name = f"RNN_0/RNN/MultiRNNCell/Cell{layer}/LSTMCell/W_0"
            shapes[name] = (2 * dim, 4 * cell_dim)
        return shapes

    def load_into(self, model: torch.nn.Module) -> None:
        """Give the moved tensors to a model without storage.

        Raises:
            FormatError: if one has another shape than the model's, or a place is empty or lacking.
        """
        places = {name: tuple(one.shape) for name, one in model.state_dict().items()}
        for name, shape in places.items():
            found = self.moved.get(name)
            if found is None or tuple(found.shape) != shape:
                theirs = self._names.get(name, f"for {name}")
                got = "is missing" if found is None else f"makes up {tuple(found.shape)}"
                raise FormatError(
                    f"{self.path}: tensor `{self.prefix}{theirs}` {got}; {shape} was expected by "
                    "the other tensors and the options."
                )
        surplus = [self._names[name] for name in self.moved if name not in places]
        if surplus or self._left:
            raise FormatError(
                f"{self.path}: tensor `{self.prefix}{min([*surplus, *self._left])}` has no place "
                "in the biLM that the other tensors and the options describe."
            )
        model.load_state_dict(self.moved, assign=True)


def _without_offset(bias: Tensor) -> Tensor:
    """Take the forget gate's 1 out of a bias."""
    if len(bias) % 4:
        return bias  # whose shape is refused later
    bias = bias.clone()
    bias.unflatten(0, (4, -1))[1] -= FORGET_OFFSET
    return bias
