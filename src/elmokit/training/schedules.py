"""How long a run lasts and how its learning rate moves, both as a share of the budget.

A new schedule is a line in `SCHEDULES`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from elmokit.errors import InputError


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    step: int = 0
    """Updates made."""
    tokens: int = 0
    """Targets predicted, of one direction, over all ranks."""
    seconds: float = 0.0
    """Time spent, validation included, earlier parts of a resumed run counted in."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a run may spend; the first limit that is reached ends it. At least one must be set."""

    seconds: float | None = None
    tokens: int | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        """Refuse an empty or endless budget."""
        limits = [limit for limit in (self.seconds, self.tokens, self.steps) if limit is not None]
        if not limits or min(limits) <= 0:
            raise ValueError(
                "A budget needs at least one limit (minutes, epochs, tokens or steps), above zero."
            )

    def share(self, progress: Progress) -> float:
        """Return the share of the budget that is spent, 0 to 1."""
        shares = []
        if self.seconds is not None:
            shares.append(progress.seconds / self.seconds)
        if self.tokens is not None:
            shares.append(progress.tokens / self.tokens)
        if self.steps is not None:
            shares.append(progress.step / self.steps)
        return min(1.0, max(shares))

    @property
    def uses_clock(self) -> bool:
        """Whether time decides: then two runs never make quite the same steps."""
        return self.seconds is not None


SCHEDULES: dict[str, Callable[[float, float], float]] = {
    "constant": lambda share, final_factor: 1.0,
    "cosine": lambda share, final_factor: (
        final_factor + (1 - final_factor) * 0.5 * (1 + math.cos(math.pi * share))
    ),
    "linear": lambda share, final_factor: 1 - share * (1 - final_factor),
}
"""(share of the budget after the warm-up that is spent, factor at the end) -> factor."""


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """How the learning rate moves over the budget."""

    kind: str = "cosine"
    """One of `SCHEDULES`. ``constant`` is the original's; ``cosine`` and ``linear`` fall to
    ``final_factor`` at the budget's end."""
    warmup_share: float = 0.05
    """Share of the budget over which the rate rises linearly from zero."""
    final_factor: float = 0.05
    """The rate at the end, as a factor of the peak; 0 is allowed."""

    def __post_init__(self) -> None:
        """Refuse unknown kinds and shares outside 0..1."""
        if self.kind not in SCHEDULES:
            raise ValueError(f"`kind` must be one of {', '.join(SCHEDULES)}, got {self.kind!r}")
        if not (0 <= self.warmup_share < 1 and 0 <= self.final_factor <= 1):
            raise ValueError(
                "`warmup_share` must be at least 0 and below 1, `final_factor` between 0 and 1"
            )

    def factor(self, share: float) -> float:
        """Return the factor on the peak learning rate when ``share`` of the budget is spent."""
        if share < self.warmup_share:
            return max(share / self.warmup_share, 1e-3)
        rest = (share - self.warmup_share) / (1 - self.warmup_share)
        return SCHEDULES[self.kind](rest, self.final_factor)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long to train, as a user says it; the first limit that is reached ends the run.

    Nothing set: ``train.num_epochs``.
    """

    minutes: float | None = None
    epochs: float | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is not above zero, by its name."""
        for name in ("minutes", "epochs", "tokens"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"--{name} must be above zero, got {value}.")

    def budget(
        self,
        *,
        targets_per_epoch: int,
        targets_per_step: int,
        default_epochs: float,
        steps_grow: bool = False,
    ) -> Budget:
        """Return the budget on a corpus of so many targets.

        Args:
            targets_per_epoch: In the corpus, of one direction.
            targets_per_step: Of one update.
            default_epochs: Where nothing is set.
            steps_grow: Later updates have more targets: epochs are then counted in targets.

        Raises:
            ValueError: if the corpus and epochs give less than one update.
        """
        epochs = self.epochs
        if self.minutes is None and self.tokens is None and epochs is None:
            epochs = default_epochs
        steps = None if epochs is None else int(epochs * targets_per_epoch / targets_per_step)
        if steps == 0:
            raise InputError(
                f"{epochs} epochs over {targets_per_epoch} targets are less than one update of "
                f"{targets_per_step} (train.batch_size × train.unroll_steps). Give more text, more "
                "epochs or a smaller batch."
            )
        seconds = None if self.minutes is None else self.minutes * 60
        tokens = self.tokens
        if steps_grow and epochs is not None:
            tokens = min(tokens or math.inf, epochs * targets_per_epoch)
            tokens, steps = int(tokens), None
        return Budget(seconds=seconds, tokens=tokens, steps=steps)
