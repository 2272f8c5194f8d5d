"""Executes runs one by one within a time limit; finished runs are not repeated.

If the process is killed, its current run is executed again by the next one (a task's training goes
on from its checkpoint). Several processes may share a store: each run is executed by one of them.
"""

import logging
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.runs.store import RunResult, RunStore
from elmokit.files.location import counted

log = logging.getLogger(__name__)

SMALLEST_SCALE = 0.15
"""Least share of the full time for a run with few labels: the dev set stays the same."""
NO_TIME = "no time left"
ELSEWHERE = "another process is training it"
WAIT_SECONDS = 1.0
"""How long to wait before the runs of other processes are looked at again."""


class OutOfTime(Exception):
    """A run was stopped at the time limit."""


CheckTime = Callable[[], None]
"""Raises `OutOfTime` at the time limit; runs call it regularly."""
Execute = Callable[[PlannedRun, CheckTime], RunResult]


@dataclass(frozen=True)
class Advance:
    """The progress of a queue."""

    done: int
    """Number of runs with a result or a divergence."""
    total: int
    seconds_left: float | None
    """Estimate from the finished runs; none without any."""
    run: PlannedRun
    """The run that starts now or has just ended."""
    result: RunResult | None = None
    """None if the run starts now."""


class RunQueue:
    """Executes runs within a time limit.

    Args:
        store: Where results are stored.
        execute: Executes a run.
        minutes: Limit for all calls of `run_all` together.
        on_advance: Called when a run starts and when it has a result, also one that another process
            has made meanwhile.
        clock: Returns seconds.
        sleep: Waits for some seconds.
    """

    def __init__(
        self,
        store: RunStore,
        execute: Execute,
        *,
        minutes: float | None = None,
        on_advance: Callable[[Advance], None] = lambda advance: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.store, self._execute, self._on_advance = store, execute, on_advance
        self._clock, self._sleep = clock, sleep
        self._deadline = None if minutes is None else clock() + 60 * minutes
        self._runs: Sequence[PlannedRun] = ()
        self._counted: Sequence[PlannedRun] = ()
        self._finished: list[tuple[PlannedRun, RunResult]] = []

    def run_all(
        self, runs: Sequence[PlannedRun], *, among: Sequence[PlannedRun] = ()
    ) -> dict[str, str]:
        """Execute the runs without a result, in order, except those that have diverged.

        A run is not started if it or the rest of its comparison would exceed the time limit, as if
        this process had to train all of it. A run of unknown duration, or one that was stopped
        before, is started, and stopped at the limit. Runs that other processes execute are waited
        for at the end. ``among`` are all runs that the progress counts; none: these. Returns the
        ids of the runs that have no result, and why.
        """
        self._runs = runs = _distinct(runs)
        self._counted = _distinct(among or runs)
        results = [(run, self.store.read(run)) for run in runs]
        self._finished = [(run, result) for run, result in results if result is not None]
        for run, _ in self._finished:
            self.store.remove_training(run)  # if the process was killed after storing the result
        remaining = [run for run, result in results if result is None]
        reasons: dict[str, str] = {}
        is_waiting = False
        while remaining := self._try_all(remaining, reasons):
            left = self._seconds_left()
            if left is not None and left <= 0:
                missing = (run for run in remaining if not self.store.is_settled(run))
                return reasons | {run.id: ELSEWHERE for run in missing}
            if not is_waiting:
                log.info("waiting for %s of other processes", counted(len(remaining), "run"))
                is_waiting = True
            self._sleep(WAIT_SECONDS)
        return reasons

    def _try_all(self, runs: Sequence[PlannedRun], reasons: dict[str, str]) -> list[PlannedRun]:
        """Execute runs, adding why some have no result; return those that others execute."""
        elsewhere = []
        for run in runs:
            with ExitStack() as stack:
                try:
                    stack.enter_context(self.store.lock(run))
                except FileExistsError:
                    elsewhere.append(run)
                    continue
                reason = self._settle(run)
            if reason is not None:
                reasons[run.id] = reason
        return elsewhere

    def _settle(self, run: PlannedRun) -> str | None:
        """Take over or make the result of a run locked here; return why it has none, else None."""
        if (result := self.store.read(run)) is not None:  # by another process, meanwhile
            self._add(run, result)
            return None
        return self.store.divergence(run) or self._try(run)

    def _try(self, run: PlannedRun) -> str | None:
        """Execute one run; return why it has no result, or none if it has one."""
        if not self._fits(run):
            return NO_TIME
        self._report(run, None)
        try:
            result = self._execute(run, self._check_time)
        except OutOfTime:
            return f"{NO_TIME}: it was started and stopped"
        except FloatingPointError as error:
            log.warning("%s: %s", run.describe(), error)
            self.store.write_divergence(run, str(error))
            return self.store.divergence(run)
        self.store.write(run, result)
        self._add(run, result)
        return None

    def _add(self, run: PlannedRun, result: RunResult) -> None:
        self._finished.append((run, result))
        self._report(run, result)

    def _seconds_left(self) -> float | None:
        return None if self._deadline is None else self._deadline - self._clock()

    def _check_time(self) -> None:
        left = self._seconds_left()
        if left is not None and left <= 0:
            raise OutOfTime

    def _fits(self, run: PlannedRun) -> bool:
        left = self._seconds_left()
        if left is None:
            return True
        if self.store.training_dir(run).exists():
            return left > 0
        pending = self._pending(self._runs)
        together = [other for other in pending if other.comparison == run.comparison]
        estimates = [estimate(other, self._finished) for other in together]
        return left > 0 and sum(seconds or 0.0 for seconds in estimates) <= left

    def _pending(self, runs: Sequence[PlannedRun]) -> list[PlannedRun]:
        return [run for run in runs if not self.store.is_settled(run)]

    def _report(self, run: PlannedRun, result: RunResult | None) -> None:
        pending = self._pending(self._counted)
        estimates = [estimate(other, self._finished) for other in pending]
        known = [seconds for seconds in estimates if seconds is not None]
        left = None
        if known or not pending:  # runs of unknown duration count as the average of the others
            left = sum(known) + (len(pending) - len(known)) * (sum(known) / max(1, len(known)))
        total = len(self._counted)
        self._on_advance(Advance(total - len(pending), total, left, run, result))


def _distinct(runs: Sequence[PlannedRun]) -> list[PlannedRun]:
    return list({run.id: run for run in runs}.values())


def estimate(run: PlannedRun, finished: Sequence[tuple[PlannedRun, RunResult]]) -> float | None:
    """Estimate the seconds that a run will take; none if no similar run has finished.

    Uses runs of the same task and data, preferably of the same share and condition; the time of
    other shares is scaled in proportion.
    """
    alike = [
        (other, result)
        for other, result in finished
        if (other.kind, other.task, other.dataset) == (run.kind, run.task, run.dataset)
    ]
    if not alike:
        return None
    # the minimum, because only the first run computes layers
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
