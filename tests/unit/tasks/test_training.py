from pathlib import Path

import pytest

from elmokit.tasks.formats.conll import TaggedSentence
from elmokit.tasks.formats.reading import Place
from elmokit.tasks.tagger import PosTask
from elmokit.tasks.training import Examples, TaskTrainConfig, _batches, _by_words, _chosen


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
