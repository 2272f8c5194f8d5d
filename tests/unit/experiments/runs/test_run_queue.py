from contextlib import ExitStack

import pytest

from elmokit.experiments.runs.run_queue import ELSEWHERE, NO_TIME, OutOfTime, RunQueue, estimate
from elmokit.experiments.runs.store import RunStore

from ....builders.experiment_runs import planned, result

PLAN = [
    planned(condition, share=share, seed=seed)
    for seed in (0, 1)
    for share in (1.0, 0.1)
    for condition in ("static", "elmo")
]


class Trainer:
    """A clock, and a trainer that takes time by it: 100 s for all labels, 30 s for a tenth."""

    def __init__(self, *, dies_at=None, diverges_at=None):
        self.now, self.made = 0.0, []
        self.dies_at, self.diverges_at = dies_at, diverges_at

    def __call__(self, run, check_time):
        if len(self.made) == self.dies_at:
            raise KeyboardInterrupt
        if run.id == self.diverges_at:
            raise FloatingPointError("The loss is not finite.")
        seconds = 100.0 if run.share == 1 else 30.0
        for _ in range(10):  # epochs
            self.now += seconds / 10
            check_time()
        self.made.append(run)
        value = 50 + 10 * run.share + run.seed + (run.condition == "elmo")
        return result(value, right=[1, 0, run.seed], seconds=seconds, wall_seconds=seconds)


def runner(folder, trainer, **settings):
    return RunQueue(RunStore(folder), trainer, clock=lambda: trainer.now, **settings)


def stored(folder):
    return {run.id: RunStore(folder).read(run).value for run in PLAN if run in RunStore(folder)}


def test_runs_are_made_once_in_their_order(tmp_path):
    trainer = Trainer()
    assert runner(tmp_path, trainer).run_all(PLAN) == {}
    assert trainer.made == PLAN
    again = Trainer()
    runner(tmp_path, again).run_all(PLAN)
    assert again.made == []


def test_the_progress_counts_all_runs_that_it_is_told_of(tmp_path):
    told = []
    queue = runner(tmp_path, Trainer(), on_advance=told.append)
    queue.run_all(PLAN[:2], among=PLAN)
    queue.run_all(PLAN[1:], among=PLAN)
    assert {advance.total for advance in told} == {len(PLAN)}
    done = [advance.done for advance in told if advance.result is not None]
    assert done == list(range(1, len(PLAN) + 1))
    assert told[1].seconds_left == 400 - 100 + 4 * 15  # a tenth of the labels counts as 0.15


def test_a_kill_loses_one_run_and_the_end_is_the_same(tmp_path):
    runner(tmp_path / "whole", Trainer()).run_all(PLAN)
    for dies_at in (0, 3, 1):
        with pytest.raises(KeyboardInterrupt):
            runner(tmp_path / "killed", Trainer(dies_at=dies_at)).run_all(PLAN)
    last = Trainer()
    runner(tmp_path / "killed", last).run_all(PLAN)
    assert last.made == PLAN[4:]
    assert stored(tmp_path / "killed") == stored(tmp_path / "whole")


def test_changed_settings_do_not_mix(tmp_path):
    runner(tmp_path, Trainer()).run_all(PLAN)
    changed = [
        planned(run.condition, share=run.share, seed=run.seed, model="another") for run in PLAN
    ]
    trainer = Trainer()
    runner(tmp_path, trainer).run_all(changed)
    assert trainer.made == changed


def test_within_a_time_whole_comparisons_are_made_and_the_rest_is_listed(tmp_path):
    trainer = Trainer()
    # 200 + 60 s for seed 0; of seed 1 all labels would take 200 s more, a tenth of them 60 s
    outcome = runner(tmp_path, trainer, minutes=400 / 60).run_all(PLAN)
    assert trainer.made == [*PLAN[:4], *PLAN[6:]]
    assert trainer.now <= 400
    assert outcome == {run.id: NO_TIME for run in PLAN[4:6]}


def test_a_run_of_unknown_length_is_given_up_when_the_time_is_over(tmp_path):
    trainer = Trainer()
    outcome = runner(tmp_path, trainer, minutes=1).run_all(PLAN)
    assert trainer.made == []
    assert trainer.now == pytest.approx(60)
    assert len(outcome) == len(PLAN)
    assert "started and stopped" in outcome[PLAN[0].id]
    assert stored(tmp_path) == {}


def test_a_run_that_was_stopped_is_started_however_long_it_is(tmp_path):
    queue = runner(tmp_path, trainer := Trainer(), minutes=1)
    store, run = RunStore(tmp_path), PLAN[3]
    for other in PLAN[:2]:
        store.write(other, result(50, right=[1, 0, 0], seconds=300.0, wall_seconds=300.0))
    store.training_dir(run).mkdir(parents=True)
    assert queue.run_all(PLAN[:5]) == {other.id: NO_TIME for other in (PLAN[2], PLAN[4])}
    assert trainer.made == [run]
    assert not store.training_dir(run).exists()


def test_what_diverges_is_told_and_the_rest_goes_on(tmp_path):
    trainer = Trainer(diverges_at=PLAN[1].id)
    outcome = runner(tmp_path, trainer).run_all(PLAN)
    assert outcome == {PLAN[1].id: "diverged: The loss is not finite."}
    assert len(trainer.made) == len(PLAN) - 1
    advances, again = [], Trainer()
    later = runner(tmp_path, again, on_advance=advances.append).run_all(PLAN)
    assert (later, again.made, advances) == (outcome, [], [])  # and it is not tried again


def test_runs_of_another_process_are_left_to_it_and_waited_for(tmp_path):
    store, trainer, advances, other = RunStore(tmp_path), Trainer(), [], ExitStack()
    other.enter_context(store.lock(PLAN[2]))

    def sleep(seconds):
        assert trainer.made == [run for run in PLAN if run != PLAN[2]]
        store.write(PLAN[2], result(71.0))
        other.close()

    queue = runner(tmp_path, trainer, sleep=sleep, on_advance=advances.append)
    assert queue.run_all(PLAN) == {}
    assert len(trainer.made) == len(PLAN) - 1  # the other one's is not repeated
    assert (advances[-1].run, advances[-1].result.value) == (PLAN[2], 71.0)
    assert (advances[-1].done, advances[-1].seconds_left) == (8, 0)


def test_a_run_that_another_process_gave_up_is_made(tmp_path):
    trainer, other = Trainer(), ExitStack()
    other.enter_context(RunStore(tmp_path).lock(PLAN[2]))
    assert runner(tmp_path, trainer, sleep=lambda seconds: other.close()).run_all(PLAN) == {}
    assert trainer.made == [*PLAN[:2], *PLAN[3:], PLAN[2]]
    assert list((tmp_path / "running").iterdir()) == []


def test_nobody_waits_beyond_the_time_limit(tmp_path):
    trainer = Trainer()

    def sleep(seconds):
        trainer.now += 100

    with RunStore(tmp_path).lock(PLAN[0]):
        outcome = runner(tmp_path, trainer, minutes=20, sleep=sleep).run_all(PLAN)
    assert outcome == {PLAN[0].id: ELSEWHERE}
    assert 1200 <= trainer.now < 1300


def test_the_rest_is_estimated_from_what_is_finished(tmp_path):
    advances = []
    runner(tmp_path, Trainer(), on_advance=advances.append).run_all(PLAN)
    begun = [one for one in advances if one.result is None]
    ended = [one for one in advances if one.result is not None]
    assert begun[0].seconds_left is None
    assert (ended[0].done, ended[0].total) == (1, 8)
    # three more with all labels; four with a tenth of them, taken for 15 s each so far
    assert ended[0].seconds_left == pytest.approx(3 * 100 + 4 * 15)
    assert ended[3].seconds_left == pytest.approx(2 * 100 + 2 * 30)
    assert ended[-1].seconds_left == 0


def test_estimates_prefer_what_is_alike():
    finished = [
        (planned("static"), result(seconds=100, wall_seconds=102)),
        (planned("elmo"), result(seconds=200, wall_seconds=300)),
        (planned("static", task="ner"), result(seconds=7, wall_seconds=7)),
    ]
    assert estimate(planned("elmo", seed=1), finished) == 202  # layers are computed once
    assert estimate(planned("top", seed=1), finished) == 152
    assert estimate(planned("elmo", share=0.5), finished[:1]) == 52
    assert estimate(planned("elmo", task="qa"), finished) is None


def test_out_of_time_is_raised_by_the_check_alone(tmp_path):
    made = runner(tmp_path, Trainer(), minutes=1)
    made._check_time()
    made._deadline = -1.0
    with pytest.raises(OutOfTime):
        made._check_time()
