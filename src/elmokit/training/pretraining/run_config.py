"""How a biLM is trained: batches, length, optimizer, schedule, validation."""

from dataclasses import dataclass, field
from typing import Literal

from elmokit.errors import ConfigError
from elmokit.training.loop import OptimizerConfig
from elmokit.training.precision import Precision
from elmokit.training.pretraining.validation import ValidationConfig
from elmokit.training.schedules import ScheduleConfig


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Batches, length, logging."""

    batch_size: int = 64
    """Rows of text read side by side, over all processes."""
    unroll_steps: int = 20
    """Words between two updates; the LSTM state goes on, gradients do not."""
    shuffle: Literal["sentences", "none"] = "sentences"
    """``none`` keeps the order of the corpus."""
    num_epochs: float = 10.0
    """Passes over the corpus where no minutes, epochs or tokens are given."""
    seed: int = 0
    """Of weights, shuffling, dropout and candidates."""
    precision: Precision = "fp32"
    """``bf16`` computes products in half width; weights, state and loss stay fp32."""
    quick_matmul: bool = True
    """Use the processor's quicker fp32 products where their relative error is below 1e-5."""
    log_steps: int = 10
    """A row in metrics.jsonl every so many updates."""
    checkpoint_seconds: float = 120.0
    """Time between checkpoints, at most a tenth of the budget's; the first one comes earlier."""
    checkpoint_steps: int | None = None
    """Updates between checkpoints, instead of the time."""

    def __post_init__(self) -> None:
        """Refuse sizes below one."""
        for name in ("batch_size", "unroll_steps", "log_steps", "checkpoint_steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"`{name}` must be at least 1")
        if self.num_epochs <= 0:
            raise ValueError("`num_epochs` must be positive")
        if self.checkpoint_seconds < 0:
            raise ValueError("`checkpoint_seconds` must not be negative")

    def rows_per_process(self, num_processes: int) -> int:
        """Return the rows that each of so many processes reads.

        Raises:
            ConfigError: if they cannot be shared evenly.
        """
        if self.batch_size % num_processes:
            raise ConfigError(
                f"train.batch_size={self.batch_size} rows cannot be shared evenly by "
                f"{num_processes} processes."
            )
        return self.batch_size // num_processes


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """How a biLM is trained, whatever it starts from."""

    train: TrainConfig = field(default_factory=TrainConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
