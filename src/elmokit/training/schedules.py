"""Budgets and learning-rate schedules. A new schedule is a line in `SCHEDULES`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from elmokit.errors import Bounds, CheckedFields, InputError, Share


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    step: int = 0
    tokens: int = 0
    """Targets predicted in one direction, over all ranks."""
    seconds: float = 0.0
    """Time spent, including validation and the time before a resume."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a run may spend; the first limit reached ends it. At least one must be set."""

    seconds: float | None = None
    tokens: int | None = None
    steps: int | None = None

    def share(self, progress: Progress) -> float:
        """Return the share of the budget spent, 0 to 1."""
        spent = (
            (progress.seconds, self.seconds),
            (progress.tokens, self.tokens),
            (progress.step, self.steps),
        )
        return min(1.0, max(value / limit for value, limit in spent if limit is not None))

    @property
    def uses_clock(self) -> bool:
        return self.seconds is not None


SCHEDULES: dict[str, Callable[[float, float], float]] = {
    "constant": lambda share, final_factor: 1.0,
    "cosine": lambda share, final_factor: (
        final_factor + (1 - final_factor) * 0.5 * (1 + math.cos(math.pi * share))
    ),
    "linear": lambda share, final_factor: 1 - share * (1 - final_factor),
    "wsd": lambda share, final_factor: 1 - share * (1 - final_factor),
}
"""(share spent of the part in which the rate falls, factor at the end) -> factor."""


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig(CheckedFields):
    """How the learning rate changes over the budget."""

    kind: str = "cosine"
    """One of `SCHEDULES`. The original's is ``constant``; ``cosine`` and ``linear`` fall to
    ``final_factor`` at the end; ``wsd`` (warm-up, stable, decay) stays at the peak and falls
    linearly over the last ``decay_share``, so that a run can be made longer until then, and a model
    can be finished from any checkpoint."""
    warmup_share: Annotated[float, Bounds(0.0, 0.999)] = 0.05
    """Share of the budget over which the rate rises linearly from zero."""
    decay_share: Annotated[float, Bounds(0.001, 1.0)] = 0.2
    """Share of the budget over which ``wsd`` falls."""
    final_factor: Share = 0.05
    """Rate at the end, as a factor of the peak."""

    def __post_init__(self) -> None:
        if self.kind not in SCHEDULES:
            raise ValueError(f"`kind` must be one of {', '.join(SCHEDULES)}, got {self.kind!r}")
        super().__post_init__()
        if self.kind == "wsd" and self.warmup_share + self.decay_share > 1:
            raise ValueError("`warmup_share` and `decay_share` must be 1 at most together")

    def factor(self, share: float) -> float:
        """Return the factor on the peak rate when ``share`` of the budget is spent."""
        if share < self.warmup_share:
            return max(share / self.warmup_share, 1e-3)
        begin = 1 - self.decay_share if self.kind == "wsd" else self.warmup_share
        return SCHEDULES[self.kind](max(0.0, share - begin) / (1 - begin), self.final_factor)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long to train, as given by the user; none set: ``train.num_epochs``."""

    minutes: float | None = None
    epochs: float | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not 0 < value < 1e12:
                raise InputError(f"--{name} must be above 0 and below 1e12, got {value}.")

    def describe(self) -> str:
        limits = [(name, value) for name, value in vars(self).items() if value is not None]
        # twelve digits are all that a whole number below the limit has
        return " ".join(f"--{name} {value:.12g}" for name, value in limits) or "train.num_epochs"

    def budget(
        self, *, targets_per_epoch: int, targets_per_step: int, default_epochs: float
    ) -> Budget:
        """Return the budget for a corpus; targets, and epochs, are those of one direction."""
        epochs = self.epochs
        if self.minutes is None and self.tokens is None and epochs is None:
            epochs = default_epochs
        steps = None if epochs is None else int(epochs * targets_per_epoch / targets_per_step)
        if steps == 0:
            raise InputError(
                f"{epochs} epochs (--epochs) of {targets_per_epoch} targets are less than one "
                f"update of {targets_per_step} (train.batch_size × train.unroll_steps)."
            )
        seconds = None if self.minutes is None else self.minutes * 60
        return Budget(seconds=seconds, tokens=self.tokens, steps=steps)
