"""What all task networks share: the base class, and the encoder, recurrent layers with dropout.

PyTorch's LSTM and GRU are driven direction by direction: its packed sequences give the same
numbers, but are slower on the CPU. Fresh weights of all networks are drawn here, too.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmokit.bilm.masking import lengths_of, reverse_sequences
from elmokit.kernels.library import use_one_thread_after_a_fork
from elmokit.shapes import Bool, Float
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.task_bilm import TaskBiLM
from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.runs.run_dir import TaskRunConfig
from elmokit.tasks.task import Answer, Labels, Task, Widths
from elmokit.vectors.static_vectors import StaticVectors

FORGET_BIAS = 1.0  # fresh bias of an LSTM's forget gate, so that memory is kept at first


def draw_weights(modules: Iterable[nn.Module], generator: torch.Generator) -> None:
    """Draw linear layers (Glorot uniform, zero biases), others as they say or by their parts."""
    for module in modules:
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif hasattr(module, "reset_parameters"):
            module.reset_parameters(generator)  # pyright: ignore[reportCallIssue]
        else:
            draw_weights(module.children(), generator)


class VariationalDropout(nn.Module):
    """Dropout of the same features at all positions of a sentence (Gal and Ghahramani 2016)."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Float[Tensor, "B T X"]) -> Float[Tensor, "B T X"]:
        if not self.training or self.share == 0:
            return x
        mask = functional.dropout(x.new_ones(x.shape[0], 1, x.shape[2]), self.share)
        return x * mask


def single_width(hidden_dims: Sequence[int]) -> int:
    if len(set(hidden_dims)) != 1:
        raise ValueError(f"`hidden_dims` must be one width, got {list(hidden_dims)}.")
    return hidden_dims[0]


class PaddedEncoder(nn.Module, ABC):
    """Encoder of padded sentences: x (B, T, X), mask (B, T) -> (B, T, output_dim), padding 0."""

    output_dim: int

    @abstractmethod
    def read(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Return one vector per position, anything at padded ones; ``x`` is 0 there."""

    def forward(
        self, x: Float[Tensor, "B T X"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T Y"]:
        lengths = lengths_of(mask)
        if mask.numel() == 0:
            return x.new_zeros(x.shape[0], x.shape[1], self.output_dim)
        padding = ~mask.unsqueeze(2)
        x = x.masked_fill(padding, 0)
        return self.read(x, lengths).masked_fill(padding, 0)


class SentenceEncoder(PaddedEncoder):
    """Stack of biLSTM or biGRU layers; a position's vector is [forward, backward].

    ``hidden_dims`` are the widths of one direction, layer by layer; ``dropout`` is the variational
    dropout at every layer's input.
    """

    def __init__(
        self,
        input_dim: int,
        hidden_dims: Sequence[int],
        *,
        cell: Literal["lstm", "gru"] = "lstm",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dropout = VariationalDropout(dropout)
        kind = nn.LSTM if cell == "lstm" else nn.GRU
        self.layers = nn.ModuleList()
        for hidden_dim in hidden_dims:
            self.layers.append(kind(input_dim, hidden_dim, batch_first=True, bidirectional=True))
            input_dim = 2 * hidden_dim
        self.output_dim = input_dim

    def reset_parameters(self, generator: torch.Generator) -> None:
        for layer in self.layers:
            hidden_dim = layer.hidden_size
            assert isinstance(hidden_dim, int)
            for name, parameter in layer.named_parameters():
                gates = parameter.detach().split(hidden_dim)  # LSTM: i, f, g, o; GRU: r, z, n
                for gate in gates:
                    if name.startswith("weight_hh"):
                        nn.init.orthogonal_(gate, generator=generator)
                    elif name.startswith("weight_ih"):
                        nn.init.xavier_uniform_(gate, generator=generator)
                    else:
                        nn.init.zeros_(gate)
                if isinstance(layer, nn.LSTM) and name.startswith("bias_ih"):
                    nn.init.constant_(gates[1], FORGET_BIAS)

    def read(self, x: Tensor, lengths: Tensor) -> Tensor:
        # On a GPU both directions of packed sequences run at once; torch packs no empty rows.
        known = lengths.clamp(min=1).cpu() if x.is_cuda else None
        for layer in self.layers:
            x = self.dropout(x)
            if known is not None:
                x = run_packed(layer, x, known)
                continue
            # Both directions read padding last, so it affects no real position.
            forward = _run(layer, x, "l0")
            backward = _run(layer, reverse_sequences(x, lengths), "l0_reverse")
            x = torch.cat([forward, reverse_sequences(backward, lengths)], dim=2)
        return x


def _run(layer: nn.Module, x: Tensor, name: str) -> Tensor:
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights: list[Tensor] = [layer.get_parameter(f"{kind}_{name}") for kind in kinds]
    start = x.new_zeros(1, x.shape[0], weights[1].shape[1])
    rest = (weights, True, 1, 0.0, layer.training, False, True)  # one layer, batch first
    if isinstance(layer, nn.LSTM):
        return torch.lstm(x, (start, start), *rest)[0]
    return torch.gru(x, start, *rest)[0]


def run_packed(layer: nn.Module, x: Tensor, lengths: Tensor) -> Tensor:
    """Run both directions: (B, T, X) -> (B, T, 2H); ``lengths`` are on the CPU, none is 0."""
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=x.shape[1])[0]


class TaskModel(nn.Module, ABC):
    """A task's network on top of `TokenInputs`.

    A network is made of its inputs, labels, and the widths of its layers. It reads one batch of
    sentences for each text of an example (two for pairs of texts), or all sentences of documents
    (`Task.batched_by`) in order, in any number of batches, on their device.
    """

    drawn: ClassVar[tuple[str, ...]] = ()
    """Its parts, in the order in which fresh weights are drawn."""

    def __init__(
        self, inputs: TokenInputs, labels: Labels, hidden_dims: Widths, *, dropout: float
    ) -> None:
        super().__init__()
        self.inputs, self.labels = inputs, labels
        self._ids = {label: number for number, label in enumerate(labels)}
        self.build(hidden_dims, dropout)

    @abstractmethod
    def build(self, hidden_dims: Widths, dropout: float) -> None:
        """Make the parts behind the inputs."""

    @abstractmethod
    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        """Return the mean loss of a batch, in nats."""

    @abstractmethod
    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[Answer]:
        """Return the answer for each example, without using its gold answer."""

    @property
    def settings(self) -> InputSettings:
        return self.inputs.settings

    @property
    def static(self) -> StaticVectors | None:
        return self.inputs.vectors

    def set_static(self, static: StaticVectors) -> None:
        self.inputs.set_static(static)

    def make_batch(
        self, sentences: Sequence[Sequence[str]], layers: Sequence[np.ndarray] | None
    ) -> TokenBatch:
        return self.inputs.make_batch(sentences, layers)

    @torch.no_grad()
    def answer(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[Answer]:
        """Return what `predict` does, outside training."""
        return self.eval().predict(batches, examples)

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_weights((getattr(self, name) for name in self.drawn), generator)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all parameters; on the CPU they share memory."""
        return {name: tensor.cpu().numpy() for name, tensor in self.state_dict().items()}

    def load_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})


def build_network(
    task: Task[Any],
    config: TaskRunConfig,
    labels: list[str],
    bilm: TaskBiLM,
    static: StaticVectors | None,
) -> TaskModel:
    """Return the untrained network of a run; ``config`` is resolved."""
    use_one_thread_after_a_fork()
    token_inputs = TokenInputs(
        config.inputs, bilm.char_vocab, num_layers=bilm.num_layers, layers_dim=bilm.dim,
        static=static,
    )  # fmt: skip
    module, _, name = task.network.partition(".")
    network = getattr(import_module(f"elmokit.tasks.networks.{module}"), name)
    if min(config.hidden_dims, default=0) < 1:
        raise ValueError(f"`hidden_dims` must be at least 1, got {list(config.hidden_dims)}.")
    return network(token_inputs, labels, config.hidden_dims, dropout=config.dropout)
