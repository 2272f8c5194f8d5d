"""What all task networks share: the base class, and the encoder, recurrent layers with dropout.

PyTorch's LSTM and GRU are driven direction by direction: its packed sequences give the same
numbers, but are slower on the CPU. Fresh weights of all networks are drawn here, too.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmokit.bilm.masking import lengths_of, reverse_sequences
from elmokit.kernels.library import use_one_thread_after_a_fork
from elmokit.shapes import Bool, Float
from elmokit.tasks.inputs.task_bilm import TaskBiLM
from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.runs.run_dir import TaskRunConfig
from elmokit.tasks.task import Labels, Task
from elmokit.vectors.static_vectors import StaticVectors
from elmokit.weights.arrays import Storage, round_all

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
    """Return the width that all layers have; ValueError if there are several."""
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
            # Both directions read padding last, so it affects no real position. Without gradients
            # torch's GRU is as fast as `gru_steps`.
            if isinstance(layer, nn.GRU) and x.device.type == "cpu" and torch.is_grad_enabled():
                forward, backward = _run_gru(layer, x, lengths)
            else:
                forward = _run(layer, x, "l0")
                backward = _run(layer, reverse_sequences(x, lengths), "l0_reverse")
            x = torch.cat([forward, reverse_sequences(backward, lengths)], dim=2)
        return x


def _weights(layer: nn.Module, name: str) -> list[Tensor]:
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [layer.get_parameter(f"{kind}_{name}") for kind in kinds]


def _run(layer: nn.Module, x: Tensor, name: str) -> Tensor:
    weights = _weights(layer, name)
    start = x.new_zeros(1, x.shape[0], weights[1].shape[1])
    rest = (weights, True, 1, 0.0, layer.training, False, True)  # one layer, batch first
    if isinstance(layer, nn.LSTM):
        return torch.lstm(x, (start, start), *rest)[0]
    return torch.gru(x, start, *rest)[0]


def run_packed(layer: nn.Module, x: Tensor, lengths: Tensor) -> Tensor:
    """Run both directions: (B, T, X) -> (B, T, 2H); ``lengths`` are on the CPU, none is 0."""
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=x.shape[1])[0]


def _run_gru(layer: nn.Module, x: Tensor, lengths: Tensor) -> list[Tensor]:
    """Run both directions of a GRU: (B, T, X) -> two (B, T, H), the second from the end."""
    # Both take their gates from one product; not x is reversed but the gates, which are narrower.
    names = ("l0", "l0_reverse")
    of_input, of_state, input_bias, state_bias = (
        torch.stack(parts) for parts in zip(*(_weights(layer, name) for name in names), strict=True)
    )
    gates = functional.linear(x, of_input.flatten(0, 1), input_bias.flatten())  # (B, T, 2G)
    ahead, back = gates.chunk(2, dim=2)
    by_step = (one.transpose(0, 1) for one in (ahead, reverse_sequences(back, lengths)))
    gates_in = torch.stack(tuple(by_step), dim=1)  # (T, D, B, G)
    states = gru_steps(gates_in, of_state, state_bias)  # (T, D, B, H)
    return [one.transpose(0, 1) for one in states.unbind(dim=1)]


# Torch has no fast GRU for the CPU: it records a dozen small operations per step and direction.
# Here a step takes six operations forward and three backward for both directions together. The
# numbers are the same; an epoch of question answering takes 0.6 of the time (`docs/log.md`,
# 2026-11-22).


def gru_steps(
    gates_in: Float[Tensor, "T D B G"], weight: Float[Tensor, "D G H"], bias: Float[Tensor, "D G"]
) -> Float[Tensor, "T D B H"]:
    """Run D GRUs of one width side by side, from zero states; first derivatives only.

    ``gates_in`` is the input part of the gates r, z, n, with its bias (G is 3H); ``weight`` and
    ``bias`` go from the state to the gates; for n the bias is inside the product with r.
    """
    return _GRUSteps.apply(gates_in, weight, bias)  # pyright: ignore[reportReturnType]


class _GRUSteps(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates_in: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        steps, directions, batch, width = gates_in.shape
        dim = width // 3
        hidden = gates_in.new_zeros(steps + 1, directions, batch, dim)
        gates, new = torch.empty_like(gates_in), torch.empty_like(hidden[1:])
        to_gates, bias = weight.transpose(1, 2).contiguous(), bias.unsqueeze(1)
        # Views of every step, made once: slicing inside the loop would cost as much as computing.
        parts = [gates[..., : 2 * dim], *gates.split(dim, dim=-1)]  # rz, r, z, inner part of n
        parts += [gates_in[..., : 2 * dim], gates_in[..., 2 * dim :], new]
        steps_of = zip(
            hidden[:-1].unbind(), hidden[1:].unbind(), gates.unbind(),
            *(part.unbind() for part in parts), strict=True,
        )  # fmt: skip
        for before, after, all_gates, rz, r, z, n_inner, rz_in, n_in, n in steps_of:
            torch.baddbmm(bias, before, to_gates, out=all_gates)
            rz.add_(rz_in).sigmoid_()
            torch.addcmul(n_in, r, n_inner, out=n).tanh_()
            torch.lerp(n, before, z, out=after)
        ctx.save_for_backward(weight, hidden, gates, new)
        return hidden[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        weight, hidden, gates, new = ctx.saved_tensors
        steps, directions, batch, dim = grad.shape
        reset, update, new_inner = gates.split(dim, dim=-1)
        before = hidden[:-1]
        # Derivatives of all steps at once; only the carry from step to step is left to the loop.
        by_new = (1 - update) * (1 - new * new)  # d state / d (sum inside tanh)
        of_reset = by_new * new_inner * reset * (1 - reset)
        of_update = (before - new) * update * (1 - update)
        factors = torch.stack([of_reset, of_update, by_new * reset], dim=3)  # (T, D, B, 3, H)
        to_inner = torch.empty_like(factors)
        to_state = torch.empty_like(grad)
        carry = None  # what the next step adds to the state's gradient
        steps_of = zip(
            grad.unbind(), to_state.unbind(), to_inner.unbind(), to_inner.flatten(3).unbind(),
            factors.unbind(), update.unbind(), strict=True,
        )  # fmt: skip
        for from_above, state, gates_of, flat, factor, z in reversed(list(steps_of)):
            if carry is None:
                state.copy_(from_above)
            else:
                torch.addcmul(from_above, *carry[:2], out=state).baddbmm_(carry[2], weight)
            torch.mul(state.unsqueeze(2), factor, out=gates_of)
            carry = state, z, flat
        to_gates_in = torch.cat([to_inner[..., :2, :].flatten(3), to_state * by_new], dim=-1)
        by_direction = to_inner.transpose(0, 1).reshape(directions, steps * batch, 3 * dim)
        states = before.transpose(0, 1).reshape(directions, steps * batch, dim)
        return to_gates_in, by_direction.transpose(1, 2) @ states, by_direction.sum(dim=1)


class TaskModel(nn.Module, ABC):
    """A task's network on top of `TokenInputs`.

    Every network takes ``(inputs, labels, hidden_dims, dropout=...)``. It reads one batch of
    sentences for each text of an example (two for pairs of texts), or all sentences of documents
    (`Task.batched_by`) in order, in any number of batches, on their device.
    """

    def __init__(self, inputs: TokenInputs, labels: Labels) -> None:
        super().__init__()
        self.inputs, self.labels = inputs, labels
        self._ids = {label: number for number, label in enumerate(labels)}

    @abstractmethod
    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        """Return the mean loss of a batch, in nats."""

    @abstractmethod
    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[Any]:
        """Return the answer for each example, without using its gold answer."""

    def predict_with_probs(
        self, batches: Sequence[TokenBatch], examples: Sequence[Any]
    ) -> list[tuple[Any, Any]]:
        """Return the answers, each with what `Task.as_json` shows of its probabilities, or None."""
        return [(answer, None) for answer in self.predict(batches, examples)]

    @torch.no_grad()
    def answer(
        self, batches: Sequence[TokenBatch], examples: Sequence[Any], *, with_probs: bool
    ) -> list[Any]:
        """Return what `predict` or `predict_with_probs` does, outside training."""
        self.eval()
        return (self.predict_with_probs if with_probs else self.predict)(batches, examples)

    @abstractmethod
    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh weights."""

    @property
    def num_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all parameters; on the CPU they share memory."""
        return {name: tensor.cpu().numpy() for name, tensor in self.state_dict().items()}

    def round_to(self, dtype: Storage) -> None:
        """Round all parameters to numbers that ``dtype`` holds exactly; see `round_all`."""
        self.load_arrays(round_all(self.arrays(), dtype))

    def load_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Replace all parameters."""
        self.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})

    def set_static(self, static: StaticVectors) -> None:
        self.inputs.set_static(static)


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
        config.inputs, num_layers=bilm.num_layers, layers_dim=bilm.dim,
        max_characters=bilm.char_vocab.config.max_characters, static=static, bilm=bilm.module,
    )  # fmt: skip
    module, _, name = task.network.partition(".")
    network = getattr(import_module(f"elmokit.tasks.networks.{module}"), name)
    if min(config.hidden_dims, default=0) < 1:
        raise ValueError(f"`hidden_dims` must be at least 1, got {list(config.hidden_dims)}.")
    return network(token_inputs, labels, config.hidden_dims, dropout=config.dropout)
