"""A run over prepared text: events, log, checkpoints, going on, stopping."""

import dataclasses
import itertools
import json
import os
import re
import signal
from functools import partial

import pytest
import torch

from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.corpus.preparation import PreparedText
from elmokit.errors import ConfigError, FormatError, Stopped
from elmokit.evaluation.perplexity import perplexity
from elmokit.jobs.metrics_log import METRICS_FILE, read_log
from elmokit.training.distributed import World
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.pretraining.run import TrainingRun
from elmokit.training.pretraining.run_config import RunConfig, TrainConfig, ValidationConfig
from elmokit.training.pretraining.validation import Validation
from elmokit.training.schedules import Limits
from elmokit.weights.model_dir import load_model

from ....builders.training_models import (
    FULL_SOFTMAX,
    VOCAB,
    random_sentences,
    toy_model,
    toy_shards,
)

TARGETS = 4 * 5
"""Of one update."""


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    held_out = toy_shards(folder / "valid", random_sentences(8, seed=5))
    return PreparedText(toy_shards(folder / "shards"), VOCAB, held_out)


def build_run(text, run_dir, updates=12, *, train=None, validation=None, **settings):
    """Build a run of some updates."""
    config = RunConfig(
        train=TrainConfig(
            **{"batch_size": 4, "unroll_steps": 5, "log_steps": 1, "checkpoint_steps": 5}
            | (train or {})
        ),
        optimizer=OptimizerConfig(learning_rate=0.02),
        validation=ValidationConfig(**{"num_times": 3} | (validation or {})),
    )
    run_dir.mkdir(exist_ok=True)
    limits = Limits(tokens=updates * TARGETS)
    model = toy_model(softmax=settings.pop("softmax", FULL_SOFTMAX))
    return TrainingRun(config, text, model, run_dir, World(), limits, **settings)


@pytest.fixture
def build(text, tmp_path):
    """A function that builds a run of some updates, in ``tmp_path / name``."""
    prepared = text

    def build(*updates, name="run", text=prepared, **settings):
        return build_run(text, tmp_path / name, *updates, **settings)

    return build


@pytest.fixture(scope="module")
def whole(text, tmp_path_factory):
    """A run of 12 updates that never stopped, its result and its events; not to be changed."""
    events = []
    run = build_run(text, tmp_path_factory.mktemp("whole") / "run", on_event=events.append)
    return run, run.run(), events


def going(run, on_event, *, save_on_signals=False):
    run.on_event, run.save_on_signals = on_event, save_on_signals
    return run


def log_of(run):
    """All rows of the log but what the clock says."""
    clock = ("seconds", "tokens_per_second")
    return [
        {name: value for name, value in row.items() if name not in clock}
        for row in read_log(run.run_dir / METRICS_FILE)
    ]


def assert_same_run(one, other):
    assert log_of(one) == log_of(other)
    weights = [(run.run_dir / "model.safetensors").read_bytes() for run in (one, other)]
    assert weights[0] == weights[1]


class TestEvents:
    def test_one_an_update_with_its_validation(self, whole):
        _, result, events = whole
        assert [event.report.progress.step for event in events] == list(range(1, 13))
        assert [k for k, event in enumerate(events, start=1) if event.validation] == [4, 8, 12]
        assert all(event.tokens_per_second > 0 for event in events)
        assert result.progress.tokens == 12 * TARGETS
        assert not result.stopped_early

    def test_the_log_has_every_logged_update_and_every_validation(self, build):
        run = build(train={"log_steps": 3})
        run.run()
        rows = read_log(run.run_dir / METRICS_FILE)
        assert [row["step"] for row in rows if "loss" in row] == [3, 6, 9, 12]
        assert [row["step"] for row in rows if "valid_mean" in row] == [4, 8, 12]
        assert {
            "tokens", "forward_loss", "backward_loss", "tokens_per_second", "learning_rate",
            "gradient_norm", "seconds",
        } <= rows[0].keys()  # fmt: skip
        first = rows[0]
        assert first["loss"] == pytest.approx((first["forward_loss"] + first["backward_loss"]) / 2)


class TestTime:
    VALIDATION_SECONDS = 1000.0

    @pytest.fixture
    def slow_validation(self, monkeypatch):
        """A clock by which every look takes 10 ms, and a validation a quarter of an hour."""
        times = itertools.count()
        pauses, validate = [], Validation.validate

        def slowly(self, *arguments):
            pauses.append(TestTime.VALIDATION_SECONDS)
            return validate(self, *arguments)

        monkeypatch.setattr(Validation, "validate", slowly)
        monkeypatch.setattr(
            "elmokit.training.loop.time.monotonic", lambda: next(times) / 100 + sum(pauses)
        )

    def test_the_speed_is_that_of_training(self, build, slow_validation):
        run = build(train={"log_steps": 3})
        run.run()
        rows = [row for row in read_log(run.run_dir / METRICS_FILE) if "loss" in row]
        speeds = [row["tokens_per_second"] for row in rows]
        assert min(speeds) > max(speeds) / 2
        assert rows[-1]["seconds"] > 2 * self.VALIDATION_SECONDS

    def test_what_passes_between_two_phases_counts(self, build, slow_validation):
        growth = {"batch_growth": ((0.5, 8),)}
        result = build(train=growth, validation={"num_times": 2}).run()
        assert result.progress.seconds > self.VALIDATION_SECONDS


class TestResult:
    def test_the_run_directory_is_the_best_model(self, whole):
        run, result, _ = whole
        model = load_model(run.run_dir)
        assert result.model_dir == run.run_dir
        assert result.perplexity.mean == model.training_metadata["perplexity"]["mean"]
        assert model.word_vocab == VOCAB

    @pytest.mark.parametrize("word", ["unseen", VOCAB.words[-1]])
    def test_held_out_text_of_unknown_words_is_told(self, build, text, tmp_path, caplog, word):
        valid = toy_shards(tmp_path / "other", [[word] * 5] * 4)
        build(text=dataclasses.replace(text, valid=valid)).run()
        assert ("words are unknown" in caplog.text) == (word == "unseen")

    def test_without_held_out_text_there_is_no_perplexity(self, build, text):
        run = build(text=dataclasses.replace(text, valid=None))
        assert run.run().perplexity is None
        for name, value in load_model(run.run_dir).state_dict().items():
            assert torch.equal(value, run.updates.model.state_dict()[name]), name


class Interrupted(Exception):
    """Ends a run between two updates."""


class TestResuming:
    @staticmethod
    def check_a_stop(build, whole):
        def stop(event):
            if event.report.progress.step == 7:
                raise Interrupted

        stopped = build(name="stopped")
        with pytest.raises(Interrupted):
            going(stopped, stop).run()
        resumed = build(name="stopped")
        assert resumed.updates.progress.step == 5
        resumed.run()
        assert_same_run(resumed, whole)

    def test_log_and_model_are_those_of_a_run_that_never_stopped(self, build, whole):
        self.check_a_stop(build, whole[0])

    @pytest.mark.parametrize(
        "settings",
        [
            {"train": {"ema_decay": 0.9}},
            {"train": {"zero_state_share": 0.3}},
            {"train": {"batch_growth": ((0.3, 6), (0.6, 8))}},
            {"train": {"batch_growth": ((0.5, 8),)}},  # after the checkpoint
            {"softmax": SoftmaxConfig(kind="sampled", num_samples=3, full_share=0.7)},
            {"softmax": SoftmaxConfig(kind="sampled", num_samples=3, full_share=0.3)},
            {
                "train": {
                    "ema_decay": 0.9,
                    "zero_state_share": 0.3,
                    "batch_growth": ((0.3, 6),),
                    "precision": "bf16",
                },
                "softmax": SoftmaxConfig(kind="sampled", num_samples=3, full_share=0.3),
            },
        ],
        ids=str,
    )
    def test_resuming_is_bit_for_bit_with_every_setting(self, build, settings):
        build = partial(build, **settings)
        whole = build(name="whole")
        whole.run()
        self.check_a_stop(build, whole)

    def test_a_shorter_budget_still_validates_what_was_trained(self, build):
        def stop(event):
            if event.report.progress.step == 6:
                raise Interrupted

        with pytest.raises(Interrupted):
            going(build(30), stop).run()  # the first of three validations would have been at 10
        shorter = build(5)
        assert shorter.run().perplexity is not None
        assert [row["step"] for row in log_of(shorter) if "valid_mean" in row] == [5]

    def test_a_run_without_patience_left_does_not_train_on(self, build):
        first = build(30, validation={"num_times": 30, "patience": 1})
        first.validation.best = 1.0  # nothing beats it
        assert first.run().stopped_early
        again = build(30, validation={"num_times": 30, "patience": 1})
        result = again.run()
        assert result.stopped_early
        assert result.progress.step == first.updates.progress.step == 1

    def test_a_checkpoint_without_its_best_score_is_damaged(self, build):
        run = build(30)
        run.save()
        (path,) = run.run_dir.glob("checkpoints/*/*.json")
        for best in ({}, {"best": "low"}):
            data = json.loads(path.read_text("utf-8"))
            data.pop("best", None)
            path.write_text(json.dumps({**data, **best}), encoding="utf-8")
            with pytest.raises(FormatError, match=r"`best`.* Delete the folder"):
                build(30)

    def test_a_finished_run_has_the_same_result_again(self, build):
        finished = build()
        first, log = finished.run(), log_of(finished)
        again = build()
        second = again.run()
        assert second.progress == first.progress
        assert second.perplexity == first.perplexity
        assert log_of(again) == log


class TestBatchGrowth:
    def test_rows_grow_at_their_share(self, build):
        tokens = []
        run = build(12, train={"batch_growth": ((0.25, 6), (0.5, 8))})
        going(run, lambda event: tokens.append(event.report.progress.tokens)).run()
        # of 240 targets: 20 an update to 60, 30 to 120, then 40
        assert tokens == [20, 40, 60, 90, 120, 160, 200, 240]
        assert run.updates.state.num_rows == 8

    def test_the_memory_of_the_old_rows_stays(self, build):
        run = build(12, train={"batch_growth": ((0.25, 6),)})
        states = []
        updates = run.updates
        set_rows = updates._set_rows
        updates._set_rows = lambda state: states.append((updates.state, state)) or set_rows(state)
        run.run()
        ((before, after),) = states
        assert before.hidden.abs().min() > 0
        for name in ("hidden", "cell"):
            old, new = getattr(before, name), getattr(after, name)
            assert torch.equal(new[:, :, :4], old)
            assert not new[:, :, 4:].any()

    def test_rows_stay_where_the_budget_of_a_resumed_run_is_longer(self, build):
        build(12, train={"batch_growth": ((0.5, 8),)}).run()
        longer = build(48, train={"batch_growth": ((0.5, 8),)})
        assert longer.run().progress.tokens == 48 * TARGETS
        assert longer.updates.state.num_rows == 8

    def test_a_corpus_too_small_for_the_largest_batch_is_refused_at_the_start(self, build):
        with pytest.raises(ValueError, match="1000 rows x 5 words = 5000"):
            build(train={"batch_growth": ((0.5, 1000),)})

    def test_processes_share_the_rows_of_a_checkpoint_evenly(self, text, tmp_path):
        grown = build_run(text, tmp_path / "run", train={"batch_growth": ((0.5, 6),)})
        grown.run()
        settings = RunConfig(train=TrainConfig(batch_size=4, unroll_steps=5, checkpoint_steps=5))
        with pytest.raises(ConfigError, match=r"6 rows.*4 processes"):
            TrainingRun(
                settings, text, toy_model(softmax=FULL_SOFTMAX), tmp_path / "run", World(size=4),
                Limits(tokens=24 * TARGETS),
            )  # fmt: skip

    def test_processes_share_every_size_evenly(self):
        config = TrainConfig(batch_size=4, batch_growth=((0.5, 7),))
        with pytest.raises(ConfigError, match=r"train\.batch_growth=7 .* 2 "):
            config.check_rows(2)

    @pytest.mark.parametrize(
        "growth",
        [((0.5, 4),), ((0.5, 8), (0.4, 16)), ((1.0, 8),), ((0.0, 8),), ((0.2, 8), (0.5, 6))],
    )
    def test_only_rising_pairs_are_allowed(self, growth):
        with pytest.raises(
            ValueError, match=f"`batch_growth` .*batch_size=4; .*{re.escape(str(growth))}"
        ):
            TrainConfig(batch_size=4, batch_growth=growth)


class TestAverage:
    def test_it_is_what_is_validated_and_kept(self, build, text):
        plain, averaged = build(30, name="plain"), build(30, train={"ema_decay": 0.99})
        plain.run()
        result = averaged.run()
        for name, value in plain.updates.model.state_dict().items():  # training itself is the same
            assert torch.equal(averaged.updates.model.state_dict()[name], value), name
        published = load_model(averaged.run_dir)
        assert published.model_hash() == averaged.updates.average.model.model_hash()
        assert published.model_hash() != averaged.updates.model.model_hash()
        expected = perplexity(published, text.valid.sentences(), precision="fp32")
        assert result.perplexity == expected

    def test_a_run_without_one_can_go_on_with_one(self, build):
        first = build(6)
        first.run()
        again = build(12, train={"ema_decay": 0.9})
        assert again.updates.average.model.model_hash() == first.updates.model.model_hash()
        again.run()
        assert again.updates.average.model.model_hash() != again.updates.model.model_hash()


class TestStopping:
    def test_patience_ends_a_run_that_gets_no_better(self, build, monkeypatch):
        run = build(
            updates=40, validation={"num_times": 20, "patience": 2}, train={"checkpoint_steps": 100}
        )
        run.validation.best = 0.0  # nothing beats it
        result = run.run()
        assert result.stopped_early
        assert result.progress.step == 4
        assert run.checkpoints.latest.name == "step-000000004"

    def test_each_update_is_saved_once(self, build):
        run = build(10)
        saved = []
        save, run.save = run.save, lambda: saved.append(run.updates.progress.step) or save()
        run.run()
        assert saved == [5, 10]


class TestTimeOfCheckpoints:
    @pytest.fixture
    def run(self, build):
        return build(train={"checkpoint_steps": None, "checkpoint_seconds": 120.0})

    @pytest.mark.parametrize(
        ("seconds", "was_validated", "due"),
        [(14.9, False, False), (15.0, False, True), (0.1, True, True)],
    )
    def test_the_first_comes_early(self, run, seconds, was_validated, due):
        assert run._save_is_due(seconds, was_validated) is due

    @pytest.mark.parametrize(
        ("seconds", "was_validated", "due"),
        [(119.0, False, False), (15.0, True, False), (120.0, False, True)],
    )
    def test_the_others_at_their_interval(self, run, seconds, was_validated, due):
        run.save()
        assert run._save_is_due(seconds, was_validated) is due

    def test_a_short_budget_has_at_least_ten(self, run):
        run.budget = dataclasses.replace(run.budget, seconds=90.0)
        assert not run._save_is_due(8.9, False)
        assert run._save_is_due(9.0, False)
        run.save()
        assert not run._save_is_due(8.9, False)
        assert run._save_is_due(9.0, False)


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    @pytest.mark.usefixtures("default_hangup")
    def test_a_signal_saves_and_the_resumed_run_is_the_same(self, build, whole, number, caplog):
        caplog.set_level("INFO")

        def kill(event):
            if event.report.progress.step == 7:
                os.kill(os.getpid(), number)

        stopped = build(name="stopped")
        with pytest.raises(Stopped, match=rf"{number.name} .*step 7\.") as raised:
            going(stopped, kill, save_on_signals=True).run()
        assert raised.value.signal_number == number
        assert "stopping after step 7, with a checkpoint" in caplog.text
        resumed = build(name="stopped")
        assert resumed.updates.progress.step == 7
        resumed.run()
        assert_same_run(resumed, whole[0])

    def test_a_signal_at_the_last_update_saves(self, build):
        def kill(event):
            if event.report.progress.step == 12:
                os.kill(os.getpid(), signal.SIGTERM)

        run = build()
        with pytest.raises(Stopped):
            going(run, kill, save_on_signals=True).run()
        assert run.checkpoints.latest.name == "step-000000012"
        assert build().run().perplexity is not None


class TestSoftmaxFirst:
    def test_the_bilm_is_untouched_during_its_share(self, build):
        run = build(softmax_first_share=0.5)
        start = {name: value.clone() for name, value in run.updates.model.state_dict().items()}
        changed = []

        def compare(event):
            values = run.updates.model.state_dict()
            changed.append(
                {name.split(".")[0] for name in start if not torch.equal(values[name], start[name])}
            )

        going(run, compare).run()
        assert changed[:6] == [{"softmax"}] * 6
        everything = {"softmax", "token_encoder", "forward_layers", "backward_layers"}
        assert changed[6] == everything


class TestErrors:
    def test_rows_that_cannot_be_shared_evenly(self):
        with pytest.raises(ConfigError, match=r"train\.batch_size=4 .* 3 "):
            TrainConfig(batch_size=4).check_rows(3)
