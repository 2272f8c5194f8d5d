"""Validation while training: when, and which model is kept."""

import json
import math

import pytest
import torch

from elmokit.corpus.preparation import PreparedText
from elmokit.evaluation.perplexity import perplexity
from elmokit.files.atomic import previous_of
from elmokit.training.distributed import World
from elmokit.training.pretraining.run_config import RunConfig, ValidationConfig
from elmokit.training.pretraining.start import RunOptions, Start
from elmokit.training.pretraining.validation import BEST, Validation, publish_best
from elmokit.training.schedules import Progress
from elmokit.weights.model_dir import load_model

from ....builders.training_models import VOCAB, random_sentences, toy_model

ALONE = World()
HELD_OUT = random_sentences(12, seed=5)
"""Of the text."""


@pytest.fixture
def build(text, tmp_path):
    """A function that builds a validation of a toy model in a fresh run directory."""

    def build(*, text=text, processes=ALONE, on_validation=lambda done, total: None, **settings):
        config = RunConfig(validation=ValidationConfig(**settings))
        options = RunOptions(on_validation=on_validation)
        return Validation(Start(config, text, tmp_path, options, processes), toy_model())

    return build


def spoil(validation, amount):
    """Make the model worse: more of ``<S>``, which the forward direction never meets."""
    with torch.no_grad():
        validation.model.softmax.bias[VOCAB.sentence_begin_id - 1] = 10 + amount


def test_it_is_due_evenly_over_the_budget_whatever_the_rounding(build):
    """0.29 * 100 is 28.999999999999996."""
    validation, validated = build(num_times=29, max_sentences=1), []
    for step in range(1, 1001):
        if validation.is_due(step / 1000):
            validation.validate(Progress(step=step), step / 1000)
            validated.append(step)
    assert validated == pytest.approx([1000 * k / 29 for k in range(1, 30)], abs=1)


def test_it_goes_on_where_a_checkpoint_stood_and_with_a_longer_budget(build):
    first = build(num_times=4, max_sentences=1)
    for share in (0.3, 0.6):
        assert first.is_due(share)
        first.validate(Progress(step=3), share)
    assert not first.is_behind(Progress(step=3))
    assert first.is_behind(Progress(step=4))
    for share, next_share in ((0.6, 0.75), (0.2, 0.25)):
        second = build(num_times=4)
        second.restore(json.loads(json.dumps(first.metadata())), share)
        assert second.metadata() == first.metadata()
        assert not second.is_due(next_share - 0.01)
        assert second.is_due(next_share)


def test_the_report_is_the_perplexity_on_evenly_spread_sentences(build):
    told, places = [], (0, 2, 4, 6, 7, 9, 11)
    validation = build(max_sentences=7, on_validation=lambda *done: told.append(done))
    report = validation.validate(Progress(step=1), 1.0)
    expected = perplexity(validation.model, [HELD_OUT[k] for k in places], precision="fp32")
    assert report.sentences == 7
    assert report.mean == pytest.approx(expected.mean, rel=1e-5)
    assert (told[0], told[-1]) == ((0, 7), (7, 7))


def test_the_best_model_is_kept_and_patience_counts_those_that_are_no_better(build, tmp_path):
    validation, answers = build(patience=2), []
    for amount, best in ((2.0, 12.0), (0.0, 10.0), (4.0, 10.0), (0.0, 10.0)):
        spoil(validation, amount)
        validation.validate(Progress(step=1), 0.5)
        assert load_model(tmp_path / BEST).softmax.bias.max().item() == best
        answers.append(validation.is_out_of_patience)
    assert answers == [False, False, False, True]


class Other(World):
    """A process to which rank 0 says: three validations without a better one."""

    def from_main(self, values):
        return torch.tensor([5.0, 3.0]) if values.numel() == 2 else values


def test_a_process_that_scores_nothing_stops_with_the_one_that_does(build):
    """Rank 0 alone has a report; the others must still leave the loop with it."""
    validation = build(patience=3, processes=Other(rank=1, size=2))
    assert validation.validate(Progress(step=1), 0.5) is None
    assert validation.is_out_of_patience
    assert validation.best == 5


def test_a_training_that_diverged_is_told_and_its_files_are_json(build, tmp_path, caplog):
    validation = build()
    with torch.no_grad():  # every word is 1,000 nats away
        validation.model.softmax.bias.fill_(-1000)
        validation.model.softmax.bias[VOCAB.sentence_begin_id - 1] = 0
    validation.validate(Progress(step=1), 1.0)
    assert validation.finish(Progress(step=1)).mean == math.inf
    assert "diverged" in caplog.text
    config = (tmp_path / "config.json").read_text(encoding="utf-8")
    json.loads(config, parse_constant=pytest.fail)


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_best_model_is_published_with_its_perplexity_on_all_sentences(
    build, tmp_path, is_killed
):
    validation = build(max_sentences=2)
    validation.validate(Progress(step=1), 0.5)
    spoil(validation, 3.0)
    if is_killed:  # while it was replaced
        (tmp_path / BEST).rename(previous_of(tmp_path / BEST))
    report = validation.finish(Progress(step=2))
    published = load_model(tmp_path)
    assert report.sentences == len(HELD_OUT)
    expected = perplexity(published, HELD_OUT, precision="fp32").mean
    assert report.mean == pytest.approx(expected, rel=1e-5)
    assert published.training_metadata["perplexity"]["mean"] == report.mean
    assert torch.equal(published.softmax.bias, toy_model().softmax.bias)
    assert not previous_of(tmp_path / BEST).exists()


def test_without_held_out_sentences_the_last_model_is_published(build, text, tmp_path):
    validation = build(text=PreparedText(text.shards, VOCAB, None))
    for amount in (1.0, 2.0):  # also when the run was gone on with
        spoil(validation, amount)
        assert validation.finish(Progress(step=1)) is None
        bias = load_model(tmp_path).softmax.bias
        assert torch.equal(bias, validation.model.softmax.bias)


def test_a_kill_while_publishing_can_be_made_good(tmp_path, monkeypatch):
    toy_model().save(tmp_path / BEST)
    names = {path.name for path in (tmp_path / BEST).iterdir()}
    copied = []

    def dies(source, target):
        copied.append(source.name)
        if len(copied) == 3:
            raise KeyboardInterrupt
        target.write_bytes(source.read_bytes())

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copyfile", dies)
        with pytest.raises(KeyboardInterrupt):
            publish_best(tmp_path)
    assert "config.json" not in copied, "a directory without it is no model yet"
    publish_best(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == names
