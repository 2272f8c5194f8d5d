"""Configuration of a task run; `FIXED` fields must stay the same when a run is resumed."""

from dataclasses import dataclass, field, replace
from typing import Literal

from elmokit.field_checks import SEEDS, check_choices, check_ranges
from elmokit.jobs.identity import FIXED
from elmokit.tasks.formats.reading import Columns
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.registry import find_task
from elmokit.tasks.task import Units

MANY, POSITIVE = 1 << 40, (1e-300, 1e300)


@dataclass(frozen=True, kw_only=True)
class TaskTrainConfig:
    """How a task model is trained."""

    epochs: int = 20
    """Most passes over the training set."""
    batch_size: int | None = field(default=None, metadata=FIXED)
    """Examples per update; none: the task's default."""
    learning_rate: float = 1e-3
    """Peak rate of Adam."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Of the rate; ``cosine`` rises over the first twentieth of all epochs and falls to a twentieth
    of the peak at their end."""
    clip_norm: float = 5.0
    """Bound on the global norm of the gradient."""
    patience: int = 4
    """Whole epochs without a better dev score before training ends."""
    seed: int = field(default=0, metadata=FIXED)
    """Of weights, order and dropout."""
    label_share: float = field(default=1.0, metadata=FIXED)
    """Share of the training examples that is used, drawn with the seed."""
    lowercase_share: float = field(default=0.0, metadata=FIXED)
    """Share of the training sentences that are read a second time, in lower case; drawn with the
    seed. For tasks that tag words."""
    finetune_bilm: bool = field(default=False, metadata=FIXED)
    """Train the biLM, too; its layers are then computed in every update."""
    bilm_learning_rate: float = 1e-4
    """Of a biLM that is trained."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_ranges(
            self, seed=SEEDS, epochs=(1, MANY), batch_size=(1, MANY), patience=(1, MANY),
            learning_rate=POSITIVE, clip_norm=POSITIVE, bilm_learning_rate=POSITIVE,
            label_share=(1e-12, 1.0), lowercase_share=(0.0, 1.0),
        )  # fmt: skip
        if self.lowercase_share and self.label_share < 1:
            raise ValueError(
                f"`lowercase_share` needs all labels, a `label_share` of 1, got {self.label_share}"
            )


@dataclass(frozen=True, kw_only=True)
class TaskRunConfig:
    """Everything that decides a task run."""

    task: str = field(metadata=FIXED)
    """One of `elmokit.tasks.registry.TASKS`."""
    units: Units = field(default="words", metadata=FIXED)
    """What a token of the data is; ``morphemes``: for ``pos`` from a Korean treebank;
    ``characters``: for ``ner`` whose rows are the characters of the text."""
    columns: Columns | None = field(default=None, metadata=FIXED)
    """Of words and tags in the files, for ``ner``."""
    hidden_dims: tuple[int, ...] = field(default=(), metadata=FIXED)
    """Widths of the recurrent layers; none: the task's default."""
    dropout: float | None = field(default=None, metadata=FIXED)
    """Of the network; none: the task's default. Mixtures have ``inputs.dropout``; where that is 0
    by default (pos, ner, nli) the network drops them with its other inputs."""
    inputs: InputSettings = field(default_factory=InputSettings, metadata=FIXED)
    """What is read at each word."""
    train: TaskTrainConfig = field(default_factory=TaskTrainConfig)
    """How the model is trained."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_ranges(self, dropout=(0.0, 0.999))

    def resolved(self, *, with_static: bool) -> "TaskRunConfig":
        """Return the configuration completed with the task's defaults."""
        task = find_task(self.task)
        return replace(
            self,
            hidden_dims=self.hidden_dims or task.default_hidden_dims,
            dropout=task.default_dropout if self.dropout is None else self.dropout,
            inputs=task.input_settings(self.inputs, with_static=with_static),
            train=replace(self.train, batch_size=self.train.batch_size or task.default_batch_size),
        )
