from pathlib import Path

import pytest
import torch

from elmokit.tasks import training as training_module
from elmokit.tasks.base import TaskModel, TaskScore
from elmokit.tasks.formats.conll import TaggedSentence
from elmokit.tasks.formats.reading import Place
from elmokit.tasks.inputs import BatchMaker, InputsConfig
from elmokit.tasks.tagger import PosTask
from elmokit.tasks.training import (
    Examples,
    TaskTrainConfig,
    _batches,
    _by_words,
    _chosen,
    train_model,
)
from elmokit.text.char_vocab import CharVocab


def examples(lengths):
    place = Place(path=Path("x"), line=1)
    made = [
        TaggedSentence(tokens=("w",) * length, tags=("X",) * length, place=place)
        for length in lengths
    ]
    return Examples(PosTask(), made, None)


def test_an_epoch_has_every_example_once_in_another_order():
    training = examples([3, 1, 4, 1, 5, 9, 2, 6] * 10)
    config = TaskTrainConfig(batch_size=7)
    first, second = (_batches(training, range(80), config, epoch) for epoch in (0, 1))
    assert first != second
    assert first == _batches(training, range(80), config, 0)
    for batches in (first, second):
        assert sorted(index for batch in batches for index in batch) == list(range(80))
        assert all(1 <= len(batch) <= 7 for batch in batches)


def test_batches_hold_sentences_of_like_length():
    training = examples(range(1, 141))
    batches = _batches(training, range(140), TaskTrainConfig(batch_size=7), 0)
    assert all(max(batch) - min(batch) == 6 for batch in batches)


def test_a_smaller_share_is_part_of_a_larger_one_and_empty_sentences_are_left_out():
    training = examples([0, *[2] * 99])
    small = _chosen(training, TaskTrainConfig(label_share=0.1))
    large = _chosen(training, TaskTrainConfig(label_share=0.5))
    assert (len(small), len(large)) == (10, 50)
    assert set(small) < set(large)
    assert 0 not in _chosen(training, TaskTrainConfig())


def test_prediction_batches_are_bounded_in_words():
    held = examples([1, 5000, 3000, 10, 10])
    order = sorted(range(5), key=held.length)
    assert list(_by_words(held, order)) == [[0, 3, 4], [2], [1]]


@pytest.mark.parametrize(
    "settings", [{"epochs": 0}, {"batch_size": 0}, {"learning_rate": 0.0}, {"label_share": 1.5}]
)
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        TaskTrainConfig(**settings)


class Counter(TaskModel):
    """Its only weight counts the updates; what it draws is kept."""

    def __init__(self):
        super().__init__()
        self.updates = torch.nn.Parameter(torch.zeros(()))
        self.drawn = []

    def loss(self, batches, examples):
        self.drawn.append(float(torch.rand(())))
        return self.updates * 1.0


def run_scripted(monkeypatch, scores, **settings):
    """Train with dev scores that are given; return the model and the reports."""
    script = iter(scores)
    monkeypatch.setattr(
        training_module, "score_model", lambda *_: TaskScore("accuracy", next(script))
    )
    model = Counter()
    config = TaskTrainConfig(epochs=6, patience=2, learning_rate=1.0, **settings)
    held = examples([1, 1, 1])
    maker = BatchMaker(InputsConfig(embeddings="none"), CharVocab(), None)
    return model, list(train_model(model, maker, held, held, config))


def test_the_best_epoch_remains_and_patience_ends_the_training(monkeypatch):
    model, reports = run_scripted(monkeypatch, [10.0, 30.0, 20.0, 30.0, 99.0])
    assert [report.is_best for report in reports] == [True, True, False, False]
    # Adam with a constant gradient moves by the rate at each of the two updates before
    assert float(model.updates.detach()) == pytest.approx(-2.0, abs=1e-4)
    assert not model.training


def test_what_is_drawn_depends_on_the_seed_alone_and_the_callers_state_is_put_back(monkeypatch):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, _ = run_scripted(monkeypatch, [1.0] * 6)
    assert torch.equal(torch.rand(3), expected)
    second, _ = run_scripted(monkeypatch, [1.0] * 6)
    other, _ = run_scripted(monkeypatch, [1.0] * 6, seed=1)
    assert first.drawn == second.drawn != other.drawn
    assert len(set(first.drawn)) == len(first.drawn)


def test_a_loss_that_is_not_finite_names_the_settings_of_a_task(monkeypatch):
    class Broken(Counter):
        def loss(self, batches, examples):
            return self.updates * float("nan")

    maker = BatchMaker(InputsConfig(embeddings="none"), CharVocab(), None)
    held = examples([1])
    with pytest.raises(FloatingPointError, match=r"Lower train\.learning_rate"):
        list(train_model(Broken(), maker, held, held, TaskTrainConfig()))
