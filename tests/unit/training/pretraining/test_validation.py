"""Validation while training: when, and which model is kept."""

import json
import math

import pytest
import torch

from elmokit.corpus.preparation import PreparedText
from elmokit.evaluation.perplexity import perplexity
from elmokit.files.atomic import previous_of
from elmokit.jobs.metrics_log import MetricsLog
from elmokit.metrics.perplexity import PerplexityCounter
from elmokit.training.distributed import World
from elmokit.training.pretraining import validation as validation_module
from elmokit.training.pretraining.run_config import ValidationConfig
from elmokit.training.pretraining.validation import BEST, Validation, publish_best
from elmokit.training.schedules import Progress
from elmokit.weights.model_dir import load_model

from ....builders.training_models import VOCAB, random_sentences, toy_model, toy_shards

HELD_OUT = random_sentences(12, seed=5)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    return PreparedText(
        toy_shards(folder / "shards"), VOCAB, toy_shards(folder / "valid", HELD_OUT)
    )


@pytest.fixture
def build(text, tmp_path):
    """A function that builds a validation of a toy model in a fresh run directory."""

    def build(*, text=text, processes=None, **settings):
        config = ValidationConfig(**settings)
        return Validation(config, text, toy_model(), tmp_path, processes or World(), seed=3)

    return build


def spoil(validation, amount):
    """Make the model worse: more of ``<S>``, which the forward direction never meets."""
    with torch.no_grad():
        validation.model.softmax.bias[VOCAB.sentence_begin_id - 1] = 10 + amount


def run(validation, num_updates):
    """Steps of a run at which validation happened."""
    validated = []
    for step in range(1, num_updates + 1):
        if validation.is_due(step / num_updates):
            validation.validate(Progress(step=step), step / num_updates)
            validated.append(step)
    return validated


@pytest.fixture
def quick_scores(monkeypatch):
    """Every validation finds the same."""
    counter = PerplexityCounter(tokens=1, sentences=1)
    report = counter.report(vocabulary=9, state="reset")
    monkeypatch.setattr(validation_module, "perplexity_of_words", lambda *_, **__: report)


@pytest.mark.usefixtures("quick_scores")
class TestWhen:
    def test_evenly_over_the_budget_and_at_its_end(self, build):
        assert run(build(num_times=4), 20) == [5, 10, 15, 20]

    @pytest.mark.parametrize("num_times", [29, 58])
    def test_never_twice_for_one_share_whatever_the_rounding(self, build, num_times):
        """0.29 * 100 is 28.999999999999996."""
        assert len(run(build(num_times=num_times), 1000)) == num_times

    def test_never_without_held_out_sentences(self, build, text):
        validation = build(text=PreparedText(text.shards, VOCAB, None))
        assert not validation.is_due(1.0)

    def test_it_goes_on_where_a_checkpoint_stood(self, build):
        first = build(num_times=4)
        run_until = [0.3, 0.6]
        for share in run_until:
            assert first.is_due(share)
            first.validate(Progress(step=1), share)
        second = build(num_times=4)
        second.restore(first.metadata(), 0.6)
        assert second.metadata() == first.metadata()
        assert not second.is_due(0.6)
        assert second.is_due(0.75)

    def test_a_longer_budget_gives_more_validations(self, build):
        first = build(num_times=4)
        assert run(first, 20) == [5, 10, 15, 20]
        second = build(num_times=4)
        second.restore(first.metadata(), 20 / 40)
        assert not second.is_due(29 / 40)
        assert second.is_due(30 / 40)

    def test_it_is_behind_after_updates_that_it_has_not_seen(self, build):
        validation = build()
        assert not validation.is_behind(Progress(step=0))
        validation.validate(Progress(step=3), 0.5)
        assert not validation.is_behind(Progress(step=3))
        assert validation.is_behind(Progress(step=4))

    def test_whether_it_is_behind_is_decided_by_rank_0(self, build):
        class Other(World):
            """A process to which rank 0 says: it is behind."""

            def from_main(self, values):
                return torch.ones_like(values)

        assert build(processes=Other(rank=1, size=2)).is_behind(Progress(step=0))


class TestBest:
    def test_the_report_is_the_perplexity_on_evenly_chosen_sentences(self, build):
        validation = build(max_sentences=4)
        report = validation.validate(Progress(step=1), 1.0)
        chosen = [HELD_OUT[index] for index in (0, 3, 6, 9)]
        assert report.sentences == 4
        expected = perplexity(validation.model, chosen, precision="fp32").mean
        assert report.mean == pytest.approx(expected, rel=1e-5)

    def test_the_chosen_sentences_come_from_all_over_the_text(self, build):
        """Every 1.7th of twelve, not the first seven."""
        chosen = build(max_sentences=7).sentences
        assert chosen == [HELD_OUT[index] for index in (0, 2, 4, 6, 7, 9, 11)]

    def test_the_best_model_is_kept_and_a_worse_one_is_not(self, build, tmp_path):
        validation = build()
        for amount, expected in ((2.0, 12.0), (0.0, 10.0), (4.0, 10.0)):
            spoil(validation, amount)
            validation.validate(Progress(step=1), 0.5)
            assert load_model(tmp_path / BEST).softmax.bias.max().item() == expected
        assert validation.validations_without_best == 1

    def test_its_progress_is_told_from_the_start_to_the_last_sentence(self, build):
        validation, told = build(max_sentences=6), []
        validation.validate(Progress(step=1), 0.1, lambda *done: told.append(done))
        assert (told[0], told[-1]) == ((0, 6), (6, 6))
        told.clear()
        validation.finish(Progress(step=1), lambda *done: told.append(done))
        assert (told[0], told[-1]) == ((0, 12), (12, 12))

    def test_patience_counts_validations_without_a_better_one(self, build):
        validation = build(patience=2)
        answers = []
        for amount in (1.0, 2.0, 0.0, 3.0, 0.5):
            spoil(validation, amount)
            validation.validate(Progress(step=1), 0.5)
            answers.append(validation.is_out_of_patience)
        assert answers == [False, False, False, False, True]

    @pytest.mark.usefixtures("quick_scores")
    def test_an_equal_score_is_no_better_one(self, build):
        validation = build(patience=2)
        answers = []
        for _ in range(3):
            validation.validate(Progress(step=1), 0.5)
            answers.append(validation.is_out_of_patience)
        assert answers == [False, False, True]

    def test_a_process_that_scores_nothing_stops_with_the_one_that_does(self, build):
        """Rank 0 alone has a report; the others must still leave the loop with it."""

        class Other(World):
            """A process to which rank 0 says: three validations without a better one."""

            def from_main(self, values):
                return torch.tensor([5.0, 3.0]) if values.numel() == 2 else values

        validation = build(patience=3, processes=Other(rank=1, size=2))
        assert validation.validate(Progress(step=1), 0.5) is None
        assert validation.is_out_of_patience
        assert validation.best == 5

    def test_a_training_that_diverged_is_told_and_its_files_are_json(self, build, tmp_path, caplog):
        validation = build()
        with torch.no_grad():  # every word is 1,000 nats away
            validation.model.softmax.bias.fill_(-1000)
            validation.model.softmax.bias[VOCAB.sentence_begin_id - 1] = 0
        report = validation.validate(Progress(step=1), 1.0)
        MetricsLog(tmp_path).write({"step": 1, "valid_mean": report.mean})
        report = validation.finish(Progress(step=1))
        assert report.mean == math.inf
        assert "diverged" in caplog.text
        (log,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
        (config,) = tmp_path.glob("**/config.json")
        for text in (log, config.read_text(encoding="utf-8")):
            json.loads(text, parse_constant=pytest.fail)
        assert json.loads(log)["valid_mean"] is None

    def test_training_metadata_say_where_the_model_comes_from(self, build, text, tmp_path):
        validation = build()
        report = validation.validate(Progress(step=7, tokens=300, seconds=2.04), 0.5)
        facts = load_model(tmp_path / BEST).training_metadata
        assert facts["steps"] == 7
        assert facts["targets_seen"] == 300
        assert facts["epochs"] == pytest.approx(300 / text.shards.num_targets)
        assert facts["seed"] == 3
        assert facts["perplexity"]["mean"] == report.mean


class TestFinish:
    def test_the_best_model_is_published_with_its_perplexity_on_all_sentences(
        self, build, tmp_path
    ):
        validation = build(max_sentences=2)
        partial = validation.validate(Progress(step=1), 0.5)
        spoil(validation, 3.0)
        report = validation.finish(Progress(step=2))
        published = load_model(tmp_path)
        assert report.sentences == len(HELD_OUT) > partial.sentences
        expected = perplexity(published, HELD_OUT, precision="fp32").mean
        assert report.mean == pytest.approx(expected, rel=1e-5)
        assert published.training_metadata["perplexity"]["mean"] == report.mean
        assert torch.equal(published.softmax.bias, toy_model().softmax.bias)

    def test_the_best_model_outlives_a_kill_while_it_is_replaced(self, build, tmp_path):
        validation = build()
        validation.validate(Progress(step=1), 0.5)
        (tmp_path / BEST).rename(previous_of(tmp_path / BEST))
        spoil(validation, 3.0)
        validation.finish(Progress(step=2))
        assert torch.equal(load_model(tmp_path).softmax.bias, toy_model().softmax.bias)
        assert not previous_of(tmp_path / BEST).exists()

    def test_without_held_out_sentences_the_last_model_is_published(self, build, text, tmp_path):
        validation = build(text=PreparedText(text.shards, VOCAB, None))
        for amount in (1.0, 2.0):  # also when the run was gone on with
            spoil(validation, amount)
            assert validation.finish(Progress(step=1)) is None
            bias = load_model(tmp_path).softmax.bias
            assert torch.equal(bias, validation.model.softmax.bias)


class TestPublishing:
    def test_the_run_directory_becomes_the_model(self, tmp_path):
        model = toy_model()
        model.save(tmp_path / BEST)
        (tmp_path / "run.json").write_text("{}")
        names = {path.name for path in (tmp_path / BEST).iterdir()}
        publish_best(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == names | {"run.json"}

    def test_a_kill_on_the_way_can_be_made_good(self, tmp_path, monkeypatch):
        toy_model().save(tmp_path / BEST)
        copied = []

        def dies(source, target):
            copied.append(source.name)
            if len(copied) == 3:
                raise KeyboardInterrupt
            target.write_bytes(source.read_bytes())

        with monkeypatch.context() as patch:
            patch.setattr(validation_module.shutil, "copyfile", dies)
            with pytest.raises(KeyboardInterrupt):
                publish_best(tmp_path)
        assert "config.json" not in copied, "a directory without it is no model yet"
        publish_best(tmp_path)
        assert not (tmp_path / BEST).exists()
        assert (tmp_path / "config.json").exists()
