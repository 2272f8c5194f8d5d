"""How a biLM is trained: batches, length, optimizer, schedule, validation."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from elmokit.errors import ConfigError
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.precision import Precision
from elmokit.training.pretraining.validation import ValidationConfig
from elmokit.training.schedules import ScheduleConfig


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Batches, length, logging."""

    batch_size: int = 64
    """Rows of text read side by side, over all processes."""
    batch_growth: tuple[tuple[float, int], ...] = ()
    """Larger batches later on: (share of the budget spent, rows from then on), both rising. New
    rows begin with a sentence and the zero state; the others go on as they were."""
    unroll_steps: int = 20
    """Words between two updates; the LSTM state goes on, gradients do not."""
    zero_state_share: float = 0.0
    """Share of the rows that begin each window with a new sentence and the zero state in both
    directions, so that the model learns to start from it. What was left of the row's sentence is
    skipped: about half a sentence for each such row."""
    shuffle: Literal["sentences", "none"] = "sentences"
    """``none`` keeps the order of the corpus."""
    num_epochs: float = 10.0
    """Passes over the corpus where no minutes, epochs or tokens are given."""
    seed: int = 0
    """Of weights, shuffling, dropout and candidates."""
    precision: Precision = "fp32"
    """``bf16`` computes products in half width; weights, state and loss stay fp32."""
    ema_decay: float | None = None
    """Decay of an exponential moving average of the weights, 0.999 for instance. It is what
    validation scores and what the finished model holds; none: the last weights are."""
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
        if not 0 <= self.zero_state_share <= 1:
            raise ValueError(
                f"`zero_state_share` must be between 0 and 1, got {self.zero_state_share}"
            )
        if self.ema_decay is not None and not 0 < self.ema_decay < 1:
            raise ValueError(f"`ema_decay` must be between 0 and 1, got {self.ema_decay}")
        sizes = [(0.0, self.batch_size), *self.batch_growth]
        if any(
            not (share < next_share < 1 and rows < next_rows)
            for (share, rows), (next_share, next_rows) in pairwise(sizes)
        ):
            raise ValueError(
                "`batch_growth` must be pairs of a share of the budget between 0 and 1 and a "
                f"number of rows, both rising, from `batch_size` = {self.batch_size} on, got "
                f"{self.batch_growth}"
            )

    def rows_at(self, share: float) -> int:
        """Return the rows, over all processes, where ``share`` of the budget is spent."""
        grown = [rows for begin, rows in self.batch_growth if begin <= share]
        return grown[-1] if grown else self.batch_size

    def rows_per_process(self, num_processes: int) -> int:
        """Return the rows that each of so many processes reads at first.

        Raises:
            ConfigError: if they cannot be shared evenly.
        """
        growth = [("batch_growth", rows) for _, rows in self.batch_growth]
        for name, rows in [("batch_size", self.batch_size), *growth]:
            if rows % num_processes:
                raise ConfigError(
                    f"train.{name}={rows} rows cannot be shared evenly by {num_processes} "
                    "processes."
                )
        return self.batch_size // num_processes


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """How a biLM is trained, whatever it starts from."""

    train: TrainConfig = field(default_factory=TrainConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
