import itertools

import pytest

from elmokit.cli import progress as bars
from elmokit.cli.progress import Listeners, TaskListeners
from elmokit.corpus.text_shards import Preparation
from elmokit.metrics.perplexity import PerplexityReport
from elmokit.tasks.runs.training import EpochReport, TaskStep
from elmokit.tasks.task import TaskScore
from elmokit.training.loop import StepReport
from elmokit.training.pretraining.run import TrainingEvent
from elmokit.training.schedules import Progress


@pytest.fixture
def clock(monkeypatch):
    """The time that the bar sees."""
    ticks = itertools.count()
    clock = type("Clock", (), {"now": 0.0})()
    monkeypatch.setattr(bars.time, "monotonic", lambda: clock.now + next(ticks) / 1e6)
    return clock


def lines_of(capsys):
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_lines_are_written_now_and_then(capsys, clock):
    with bars.progress_bar("training", total=200, log_every_seconds=30) as progress:
        for done in range(100):
            clock.now += 1
            progress(done)
    lines = lines_of(capsys)
    assert len(lines) == 3
    assert lines[-1].startswith("training 44% 89 s, about")


def test_progress_on_a_terminal_draws_one_bar_on_stderr(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with bars.progress_bar("training") as progress:
        progress(5000, total=10_000, status="5,000 words", description="counting words")
        progress(0.25, total=1.0, status="loss 3.1", description="training")
    captured = capsys.readouterr()
    assert captured.out == ""
    last = captured.err[captured.err.rindex("training") :]
    assert "25%" in last
    assert "loss 3.1" in last
    assert "words" not in last


def test_a_run_shows_its_stages_and_keeps_the_last_validation_in_sight():
    shown = []
    run = Listeners("training", lambda completed, **settings: shown.append((completed, settings)))
    validation = PerplexityReport(
        forward=9.0, backward=11.0, mean=10.0, mean_known=10.0, tokens=4, sentences=1, oov_rate=0.0,
        bits_per_byte=1.0, bits_per_byte_spelled=1.0, vocabulary=5, state="warm",
    )  # fmt: skip
    report = StepReport(
        progress=Progress(step=3, tokens=60, seconds=1.0), share=0.25, loss=2.5, parts={},
        learning_rate=0.1, gradient_norm=1.0, carry=None,
    )  # fmt: skip
    run.on_preparation(Preparation("tokenizing", 500, 9000, None))
    run.on_event(TrainingEvent(report, 1234.4, None))
    run.on_validation(64, 500)
    for result in (validation, None):
        run.on_event(TrainingEvent(report, 1234.4, result))
    stages = [(done, settings["total"], settings["description"]) for done, settings in shown]
    training = (0.25, 1.0, "training")
    assert stages == [(9000, None, "tokenizing"), training, (64, 500, "validating"), training,
                      training]  # fmt: skip
    statuses = [settings["status"] for _, settings in shown]
    assert "2.500" in statuses[1]
    assert "perplexity" not in statuses[1]
    assert statuses[3] == statuses[4] == f"{statuses[1]} · held-out perplexity 10.0"


def test_a_task_shows_updates_the_scoring_of_dev_and_the_last_score():
    shown = []
    task = TaskListeners(lambda completed, **settings: shown.append((completed, settings)))
    task.on_step(TaskStep("scoring dev", 10, 40, 1))
    task.on_epoch(EpochReport(1, 0.5, TaskScore("accuracy", 81.25), True, 9.0))
    task.on_step(TaskStep("training", 4, 60, 2, 0.25))
    assert [(done, settings["total"], settings["description"]) for done, settings in shown] == [
        (10, 40, "scoring dev"), (4, 60, "training"),
    ]  # fmt: skip
    assert shown[1][1]["status"] == "epoch 2 · loss 0.2500 · dev accuracy 81.25 (best)"
