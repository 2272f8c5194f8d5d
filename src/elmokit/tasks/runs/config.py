"""Configuration of a task run, and its network."""

from dataclasses import dataclass, field, replace
from typing import Any

from elmokit.field_checks import check_choices
from elmokit.kernels.forking import use_one_thread_after_a_fork
from elmokit.tasks.formats.columns import Columns
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.task_bilm import TaskBiLM
from elmokit.tasks.inputs.token_inputs import TokenInputs
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.training import TaskTrainConfig
from elmokit.tasks.task import Task, TaskModel, Units
from elmokit.vectors.static_vectors import StaticVectors


@dataclass(frozen=True, kw_only=True)
class TaskRunConfig:
    """Everything that decides a task run."""

    task: str
    """One of `elmokit.tasks.registry.TASKS`."""
    units: Units = "words"
    """What a token of the data is; ``morphemes``: for ``pos`` from a Korean treebank;
    ``characters``: for ``ner`` whose rows are the characters of the text."""
    columns: Columns | None = None
    """Of words and tags in the files, for ``ner``; none: the first and the last."""
    hidden_dims: tuple[int, ...] = ()
    """Widths of the recurrent layers; none: the task's default."""
    dropout: float | None = None
    """Of the network; none: the task's default. Mixtures have ``inputs.dropout``; where that is 0
    by default (pos, ner, nli) the network drops them with its other inputs."""
    inputs: InputSettings = field(default_factory=InputSettings)
    """What is read at each word."""
    train: TaskTrainConfig = field(default_factory=TaskTrainConfig)
    """How the model is trained."""

    def __post_init__(self) -> None:
        check_choices(self)
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ValueError(f"`dropout` must be at least 0 and below 1, got {self.dropout}")

    def resolved(self, *, with_static: bool) -> "TaskRunConfig":
        """Return the configuration completed with the task's defaults.

        Raises:
            InputError: for an unknown task, or one that cannot read layers where ``inputs`` says.
        """
        task = find_task(self.task)
        return replace(
            self,
            hidden_dims=self.hidden_dims or task.default_hidden_dims,
            dropout=task.default_dropout if self.dropout is None else self.dropout,
            inputs=task.input_settings(self.inputs, with_static=with_static),
            train=replace(self.train, batch_size=self.train.batch_size or task.default_batch_size),
        )


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
    assert config.dropout is not None
    return task.build(token_inputs, labels, config.hidden_dims, config.dropout)
