"""How a biLM is trained: batches, length, optimizer, schedule, validation.

Fields that are `FIXED` must stay the same when a run is resumed.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.corpus.order_and_packing import Shuffle
from elmokit.corpus.preparation import VocabConfig
from elmokit.corpus.text_shards import TextConfig
from elmokit.errors import Bounds, CheckedFields, Count, Seed, Share
from elmokit.jobs.identity import FIXED
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.schedules import ScheduleConfig

TrainingPrecision = Literal["auto", "fp32", "bf16"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig(CheckedFields):
    """Batches, length, logging."""

    batch_size: Count = field(default=64, metadata=FIXED)
    """Rows of text read in parallel, over all processes."""
    unroll_steps: Count = field(default=20, metadata=FIXED)
    """Words between two updates; the LSTM state is carried over, gradients are not."""
    zero_state_share: Share = 0.0
    """Share of the rows that begin each window with a new sentence and the zero state in both
    directions, so that the model learns to start from it. The rest of the row's old sentence is
    skipped, half of it on average."""
    shuffle: Shuffle = field(default="sentences", metadata=FIXED)
    """``none`` keeps the order of the corpus."""
    num_epochs: Annotated[float, Bounds(1e-9, 1e9)] = 10.0
    """Passes over the corpus if no minutes, epochs or tokens are given."""
    seed: Seed = field(default=0, metadata=FIXED)
    """Of weights, shuffling, dropout and candidates."""
    precision: TrainingPrecision = field(default="auto", metadata=FIXED)
    """``bf16`` computes products in bf16; weights, state and loss stay fp32. ``auto`` does on a CPU
    that is faster in it; a resumed run stays with its choice."""
    ema_decay: Annotated[float, Bounds(1e-9, 1 - 1e-9)] | None = None
    """Decay of an exponential moving average of the weights, such as 0.999. Validation scores it
    and the finished model holds it; none: the last weights."""
    quick_matmul: bool = True
    """Use the processor's quicker fp32 products if their relative error is below 1e-5."""
    log_steps: Count = 10
    """Updates between two rows in metrics.jsonl."""
    checkpoint_seconds: Annotated[float, Bounds(0.0, 1e9)] = 120.0
    """Time between checkpoints, at most a tenth of the budget; the first one comes earlier."""
    checkpoint_steps: Count | None = None
    """Updates between checkpoints, instead of the time."""
    keep_tokens: tuple[int, ...] = ()
    """Keep the model after so many predicted words and sentence ends, too, in ``kept/``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if list(self.keep_tokens) != sorted({number for number in self.keep_tokens if number > 0}):
            raise ValueError(f"`keep_tokens` must be above 0 and rising, got {self.keep_tokens}")


@dataclass(frozen=True, kw_only=True)
class ValidationConfig(CheckedFields):
    """Full-softmax perplexity on held-out text during training."""

    num_times: Count = 10
    """Validations, evenly spread over the budget; the last one is at its end."""
    max_sentences: Count = 1000
    """Sentences scored each time; at the end of the run, all are."""
    patience: Count | None = None
    """Stop after this many validations without an improvement; none: never."""


@dataclass(frozen=True, kw_only=True)
class RunConfig(CheckedFields):
    """The settings that `pretrain` and `finetune` share."""

    text: TextConfig = field(default_factory=TextConfig, metadata=FIXED)
    vocab: VocabConfig = field(default_factory=VocabConfig, metadata=FIXED)
    """Size of a counted vocabulary."""
    softmax: SoftmaxConfig = field(default_factory=SoftmaxConfig, metadata=FIXED)
    train: TrainConfig = field(default_factory=TrainConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
