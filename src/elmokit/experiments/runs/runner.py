"""Runs one after the other, those that are done already left out, within a time.

A kill loses the run that was going on; the same call goes on with it.
"""

import logging
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.runs.store import RunResult, RunStore

log = logging.getLogger(__name__)

SMALLEST_SCALE = 0.15
"""A run with few labels takes at least this part of one with all: the dev set stays as it is."""
NO_TIME = "no time left"


class OutOfTime(Exception):
    """A run was given up because the time is over."""


CheckTime = Callable[[], None]
"""Raises `OutOfTime` when the time is over; a run calls it now and then."""


Execute = Callable[[PlannedRun, CheckTime], RunResult]
"""Who makes the result of a run."""


@dataclass(frozen=True)
class Advance:
    """How far it is."""

    done: int
    """Runs that have a result, or have diverged."""
    total: int
    seconds_left: float | None
    """For the rest, from the runs that are finished; none while nothing is known."""
    run: PlannedRun
    """The one that begins now, or has just ended."""
    result: RunResult | None = None
    """Its result; none: it begins."""


@dataclass(frozen=True)
class Outcome:
    """What was not run, and why."""

    reasons: dict[str, str] = field(default_factory=dict)
    """By the id of the run."""


class Runner:
    """Makes runs within a time.

    Args:
        store: Where results are kept.
        execute: Makes a result.
        minutes: For all calls together; none: without end.
        on_advance: Told when a run begins and when it has ended.
        clock: Seconds.
    """

    def __init__(
        self,
        store: RunStore,
        execute: Execute,
        *,
        minutes: float | None = None,
        on_advance: Callable[[Advance], None] = lambda advance: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store, self._execute, self._on_advance = store, execute, on_advance
        self._clock = clock
        self._deadline = None if minutes is None else clock() + 60 * minutes

    def run_all(self, runs: Sequence[PlannedRun]) -> Outcome:
        """Make those of the runs that have no result yet, in their order; none that has diverged.

        A run is not begun if it, or what is missing of its comparison, would take longer than there
        is time. A run of unknown length is begun, and given up when the time is over.
        """
        outcome = Outcome()
        known = [(run, self.store.read(run)) for run in runs]
        finished = [(run, result) for run, result in known if result is not None]
        for run in runs:
            if run in self.store:
                continue
            reason = self.store.divergence(run) or self._make(run, runs, finished)
            if reason is not None:
                outcome.reasons[run.id] = reason
        return outcome

    def _make(
        self,
        run: PlannedRun,
        runs: Sequence[PlannedRun],
        finished: list[tuple[PlannedRun, RunResult]],
    ) -> str | None:
        """Make one run; return why not, if it is not made."""
        if not self._fits(run, runs, finished):
            return NO_TIME
        self._tell(run, runs, finished, None)
        try:
            result = self._execute(run, self._check_time)
        except OutOfTime:
            return f"{NO_TIME}: it was begun and given up"
        except FloatingPointError as error:
            log.warning("%s: %s", run.describe(), error)
            self.store.write_divergence(run, str(error))
            return self.store.divergence(run)
        self.store.write(run, result)
        finished.append((run, result))
        self._tell(run, runs, finished, result)
        return None

    def _seconds_left(self) -> float | None:
        return None if self._deadline is None else self._deadline - self._clock()

    def _check_time(self) -> None:
        left = self._seconds_left()
        if left is not None and left <= 0:
            raise OutOfTime

    def _fits(
        self,
        run: PlannedRun,
        runs: Sequence[PlannedRun],
        finished: list[tuple[PlannedRun, RunResult]],
    ) -> bool:
        left = self._seconds_left()
        if left is None:
            return True
        together = [other for other in self._pending(runs) if other.comparison == run.comparison]
        estimates = [estimate(other, finished) for other in together]
        return left > 0 and sum(seconds or 0.0 for seconds in estimates) <= left

    def _pending(self, runs: Sequence[PlannedRun]) -> list[PlannedRun]:
        pending = {run.id: run for run in runs if not self.store.is_settled(run)}
        return list(pending.values())

    def _tell(
        self,
        run: PlannedRun,
        runs: Sequence[PlannedRun],
        finished: list[tuple[PlannedRun, RunResult]],
        result: RunResult | None,
    ) -> None:
        pending = self._pending(runs)
        estimates = [estimate(other, finished) for other in pending]
        known = [seconds for seconds in estimates if seconds is not None]
        left = None
        if known or not pending:  # those of unknown length count as the others do on average
            left = sum(known) + (len(pending) - len(known)) * (sum(known) / max(1, len(known)))
        total = len({other.id for other in runs})
        self._on_advance(Advance(total - len(pending), total, left, run, result))


def estimate(run: PlannedRun, finished: Sequence[tuple[PlannedRun, RunResult]]) -> float | None:
    """Return about how many seconds a run will take, or none if nothing like it was run.

    From runs of the same task and data, those of the same share and condition first; a run with
    more or fewer labels is taken in proportion.
    """
    alike = [
        (other, result)
        for other, result in finished
        if (other.kind, other.task, other.dataset) == (run.kind, run.task, run.dataset)
    ]
    if not alike:
        return None
    # the smallest: layers are computed in the first run alone
    overhead = min(max(0.0, result.wall_seconds - result.seconds) for _, result in alike)
    for closer in (
        lambda other: other.share == run.share and other.condition == run.condition,
        lambda other: other.share == run.share,
    ):
        seconds = [result.seconds for other, result in alike if closer(other)]
        if seconds:
            return statistics.mean(seconds) + overhead
    nearest = min(alike, key=lambda pair: abs(pair[0].share - run.share))
    scale = max(SMALLEST_SCALE, run.share / nearest[0].share)
    return nearest[1].seconds * scale + overhead
