"""What every network of a task offers, and how it is built and loaded."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.kernels.threads import use_one_thread_after_a_fork
from elmokit.tasks.inputs.task_bilm import TaskBiLM
from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.tasks.task import Labels, Task
from elmokit.vectors.static_vectors import StaticVectors
from elmokit.weights.arrays import Storage
from elmokit.weights.storage import round_all


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
