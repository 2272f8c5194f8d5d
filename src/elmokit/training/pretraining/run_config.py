"""How a biLM is trained: batches, length, optimizer, schedule, validation."""

from dataclasses import dataclass, field
from itertools import pairwise

from elmokit.corpus.order import Shuffle
from elmokit.errors import ConfigError
from elmokit.field_checks import SEEDS, check_choices, check_ranges
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.precision import TrainingPrecision
from elmokit.training.pretraining.validation import ValidationConfig
from elmokit.training.schedules import ScheduleConfig


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Batches, length, logging."""

    batch_size: int = 64
    """Rows of text read in parallel, over all processes."""
    batch_growth: tuple[tuple[float, int], ...] = ()
    """Larger batches later: (share of the budget spent, rows from then on), both increasing. New
    rows start with a new sentence and the zero state."""
    unroll_steps: int = 20
    """Words between two updates; the LSTM state is carried over, gradients are not."""
    zero_state_share: float = 0.0
    """Share of the rows that begin each window with a new sentence and the zero state in both
    directions, so that the model learns to start from it. The rest of the row's old sentence is
    skipped, half of it on average."""
    shuffle: Shuffle = "sentences"
    """``none`` keeps the order of the corpus."""
    num_epochs: float = 10.0
    """Passes over the corpus if no minutes, epochs or tokens are given."""
    seed: int = 0
    """Of weights, shuffling, dropout and candidates."""
    precision: TrainingPrecision = "fp32"
    """``bf16`` computes products in bf16; weights, state and loss stay fp32."""
    ema_decay: float | None = None
    """Decay of an exponential moving average of the weights, such as 0.999. Validation scores it
    and the finished model holds it; none: the last weights."""
    quick_matmul: bool = True
    """Use the processor's quicker fp32 products if their relative error is below 1e-5."""
    log_steps: int = 10
    """Updates between two rows in metrics.jsonl."""
    checkpoint_seconds: float = 120.0
    """Time between checkpoints, at most a tenth of the budget; the first one comes earlier."""
    checkpoint_steps: int | None = None
    """Updates between checkpoints, instead of the time."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_ranges(self, seed=SEEDS)
        for name in ("batch_size", "unroll_steps", "log_steps", "checkpoint_steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"`{name}` must be at least 1, got {value}")
        if not self.num_epochs > 0:  # nor NaN
            raise ValueError(f"`num_epochs` must be positive, got {self.num_epochs}")
        if self.checkpoint_seconds < 0:
            raise ValueError(
                f"`checkpoint_seconds` must not be negative, got {self.checkpoint_seconds}"
            )
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
                "`batch_growth` must be pairs (share of the budget between 0 and 1, rows), both "
                f"increasing, with rows above batch_size={self.batch_size}; got {self.batch_growth}"
            )

    def rows_at(self, share: float) -> int:
        """Return the rows of all processes when ``share`` of the budget is spent."""
        grown = [rows for begin, rows in self.batch_growth if begin <= share]
        return grown[-1] if grown else self.batch_size

    def rows_per_process(self, num_processes: int) -> int:
        """Return the rows that each process starts with.

        Raises:
            ConfigError: if any number of rows cannot be shared evenly.
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
    """The settings that `pretrain` and `finetune` share."""

    train: TrainConfig = field(default_factory=TrainConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
