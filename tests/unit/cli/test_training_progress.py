"""What a training run shows while it goes on."""

import pytest

from elmokit.cli.training_progress import Listeners, TaskListeners
from elmokit.corpus.text_shards import Preparation
from elmokit.metrics.perplexity import PerplexityReport
from elmokit.tasks.runs.training import EpochReport, TaskStep
from elmokit.tasks.task import TaskScore
from elmokit.training.loop import StepReport
from elmokit.training.pretraining.run import TrainingEvent
from elmokit.training.schedules import Progress

VALIDATION = PerplexityReport(
    forward=9.0, backward=11.0, mean=10.0, tokens=4, sentences=1, oov_rate=0.0,
    bits_per_byte=1.0, bits_per_byte_spelled=1.0, vocabulary=5, state="warm",
)  # fmt: skip


@pytest.fixture
def shown():
    """Every call of the bar: (completed, settings)."""
    return []


@pytest.fixture
def two(shown):
    return Listeners("training", lambda completed, **settings: shown.append((completed, settings)))


def event(validation=None):
    report = StepReport(
        progress=Progress(step=3, tokens=60, seconds=1.0), share=0.25, loss=2.5, parts={},
        learning_rate=0.1, gradient_norm=1.0, carry=None,
    )  # fmt: skip
    return TrainingEvent(report, 1234.4, validation)


def test_preparation_is_a_stage_of_its_own(two, shown):
    two.on_preparation(Preparation("tokenizing", 500, 9000, None))
    two.on_event(event())
    completed, settings = shown[0]
    assert (completed, settings["total"], settings["description"]) == (9000, None, "tokenizing")
    assert settings["status"] == "500 sentences, 9,000 words"
    completed, settings = shown[1]
    assert (completed, settings["total"], settings["description"]) == (0.25, 1.0, "training")


def test_the_last_validation_stays_in_sight(two, shown):
    two.on_event(event())
    two.on_event(event(VALIDATION))
    two.on_event(event())
    statuses = [settings["status"] for _, settings in shown]
    assert statuses[0] == "step 3 · 1,234 tokens/s · loss 2.500"
    assert statuses[1] == statuses[2] == f"{statuses[0]} · held-out perplexity 10.0"


def test_a_validation_is_a_stage_of_its_own(two, shown):
    two.on_event(event())
    two.on_validation(0, 500)
    two.on_validation(64, 500)
    two.on_event(event(VALIDATION))
    stages = [(settings["description"], completed) for completed, settings in shown]
    assert stages == [("training", 0.25), ("validating", 0), ("validating", 64), ("training", 0.25)]
    assert shown[2][1]["total"] == 500


def test_a_task_shows_updates_the_scoring_of_dev_and_the_last_score(shown):
    tasks = TaskListeners(lambda completed, **settings: shown.append((completed, settings)))
    tasks.on_step(TaskStep("training", 3, 60, 1, 0.5))
    tasks.on_step(TaskStep("scoring dev", 10, 40, 1))
    tasks.on_epoch(EpochReport(1, 0.5, TaskScore("accuracy", 81.25), True, 9.0))
    tasks.on_step(TaskStep("training", 4, 60, 2, 0.25))
    assert [(done, found["total"], found["description"]) for done, found in shown] == [
        (3, 60, "training"), (10, 40, "scoring dev"), (4, 60, "training"),
    ]  # fmt: skip
    assert shown[0][1]["status"] == "epoch 1 · loss 0.5000"
    assert shown[2][1]["status"] == "epoch 2 · loss 0.2500 · dev accuracy 81.25 (best)"
