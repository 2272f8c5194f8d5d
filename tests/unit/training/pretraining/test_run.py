"""A run over prepared text: events, log, checkpoints, going on, stopping."""

import contextlib
import dataclasses
import json
import os
import threading

import pytest
import torch

from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.corpus.preparation import VocabConfig
from elmokit.corpus.text_shards import TextConfig
from elmokit.errors import ConfigError
from elmokit.evaluation.perplexity import perplexity
from elmokit.jobs.job import METRICS_FILE, read_log
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.training.distributed import World
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.pretraining import start
from elmokit.training.pretraining.run import PretrainConfig, RunOptions, TrainingRun, pretrain
from elmokit.training.pretraining.run_config import RunConfig, TrainConfig, ValidationConfig
from elmokit.training.pretraining.start import Start
from elmokit.training.schedules import Limits
from elmokit.weights.model_dir import load_model

from ....builders.training_models import (
    FULL_SOFTMAX,
    random_sentences,
    toy_config,
    toy_model,
    write_text,
)

TARGETS = 4 * 5
"""Of one update."""


@pytest.fixture
def build(text, tmp_path):
    """A function that builds a run of some updates, in ``tmp_path / name``."""

    def build(updates=12, *, name="run", train=None, validation=None, **settings):
        usual = {"batch_size": 4, "unroll_steps": 5, "log_steps": 1, "checkpoint_steps": 5}
        config = RunConfig(
            train=TrainConfig(**usual | (train or {})),
            optimizer=OptimizerConfig(learning_rate=0.02),
            validation=ValidationConfig(**{"num_times": 3} | (validation or {})),
        )
        run_dir = tmp_path / name
        run_dir.mkdir(exist_ok=True)
        model = toy_model(softmax=settings.pop("softmax", FULL_SOFTMAX))
        share = settings.pop("softmax_first_share", 0.0)
        options = RunOptions(limits=Limits(tokens=updates * TARGETS), **settings)
        start = Start(config, text, run_dir, options)
        return TrainingRun(start, model, softmax_first_share=share)

    return build


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


class Interrupted(Exception):
    """Ends a run between two updates."""


def stop_at(step):
    def stop(event):
        if event.report.progress.step == step:
            raise Interrupted

    return stop


@pytest.mark.parametrize("settings", [
    {"softmax_first_share": 0.5},  # ends after the checkpoint
    {
        "train": {"ema_decay": 0.9, "zero_state_share": 0.3, "precision": "bf16"},
        "softmax": SoftmaxConfig(kind="sampled", num_samples=3),
    },
], ids=["softmax first", "all"])  # fmt: skip
def test_resuming_is_bit_for_bit_with_every_setting(build, settings):
    whole = build(name="whole", **settings)
    whole.run()
    with pytest.raises(Interrupted):
        build(name="stopped", on_event=stop_at(7), **settings).run()
    resumed = build(name="stopped", **settings)
    assert resumed.updates.progress.step == 5
    resumed.run()
    assert_same_run(resumed, whole)


def test_what_was_to_be_kept_and_is_not_is_told(build, caplog):
    keep = (TARGETS, 2 * TARGETS, 1000)
    with pytest.raises(Interrupted):
        build(on_event=stop_at(7), train={"keep_tokens": keep[1:]}).run()
    run = build(train={"keep_tokens": keep})
    run.run()
    assert [path.name for path in (run.run_dir / "kept").iterdir()] == ["40"]
    (message,) = [text for text in caplog.messages if "--keep" in text]
    assert "after 20, 1k; the run read 240 words" in message


def test_a_run_from_a_pipe_goes_on_with_another(corpus, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    os.mkfifo(first)
    os.mkfifo(second)
    content = corpus.read_bytes()
    threading.Thread(target=first.write_bytes, args=(content,), daemon=True).start()
    pretrain(CONFIG, [first], tmp_path / "run", RunOptions(limits=SHORT, device="cpu"))
    # the text is there already, so nobody needs to write it
    longer = RunOptions(limits=Limits(tokens=2 * SHORT.tokens), device="cpu", resume=True)
    result = pretrain(CONFIG, [second], tmp_path / "run", longer)
    assert result.progress.tokens == longer.limits.tokens


def test_processes_share_the_rows_evenly(corpus, tmp_path, monkeypatch):
    three = contextlib.nullcontext(World(size=3))
    monkeypatch.setattr(start, "world", lambda device: three)
    with pytest.raises(ConfigError, match=r"batch_size.* 3 .* 4 "):
        pretrain(CONFIG, [corpus], tmp_path / "run", RunOptions(limits=SHORT, device="cpu"))


def test_patience_ends_a_run_that_gets_no_better(build):
    patience = {"num_times": 20, "patience": 2}
    run = build(40, validation=patience, train={"checkpoint_steps": 100})
    run.validation.best = 0.0  # nothing beats it
    result = run.run()
    assert result.stopped_early
    assert result.progress.step == 4
    assert run.checkpoints.latest.name == "step-000000004"


def test_the_bilm_is_untouched_while_its_softmax_is_trained_first(build):
    changed = []

    def compare(_):
        values = run.updates.model.state_dict()
        changed.append({n.split(".")[0] for n in start if not torch.equal(values[n], start[n])})

    run = build(softmax_first_share=0.5, on_event=compare)
    start = {name: value.clone() for name, value in run.updates.model.state_dict().items()}
    run.run()
    assert changed[:6] == [{"softmax"}] * 6
    assert changed[6] == {"softmax", "token_encoder", "forward_layers", "backward_layers"}


def test_a_longer_budget_never_trains_the_softmax_alone_again(build):
    build(12, softmax_first_share=0.5).run()
    longer = build(60, softmax_first_share=0.5)  # alone until 30
    assert longer.updates.progress.step == 12
    before = {name: value.clone() for name, value in longer.updates.model.state_dict().items()}
    next(iter(longer.updates.run()))
    after = longer.updates.model.state_dict()
    changed = {name.split(".")[0] for name in after if not torch.equal(after[name], before[name])}
    assert changed == {"softmax", "token_encoder", "forward_layers", "backward_layers"}


def test_the_average_is_what_is_validated_and_kept(build, text):
    plain = build(30, name="plain")
    averaged = build(30, train={"ema_decay": 0.99}, validation={"num_times": 1})
    plain.run()
    result = averaged.run()
    for name, value in plain.updates.model.state_dict().items():  # training itself is the same
        assert torch.equal(averaged.updates.model.state_dict()[name], value), name
    published = load_model(averaged.run_dir)
    assert published.model_hash() == averaged.updates.average.model.model_hash()
    assert published.model_hash() != averaged.updates.model.model_hash()
    expected = perplexity(published, text.valid.sentences(), precision="fp32")
    assert result.perplexity == expected


CONFIG = PretrainConfig(
    text=TextConfig(tokenizer=TokenizerConfig(name="whitespace")),
    vocab=VocabConfig(min_count=1),
    model=toy_config(),
    softmax=SoftmaxConfig(kind="full"),
    train=TrainConfig(batch_size=4, unroll_steps=5, log_steps=1),
    optimizer=OptimizerConfig(learning_rate=0.02),
    validation=ValidationConfig(num_times=2),
)
SHORT = Limits(tokens=100)


@pytest.fixture
def corpus(tmp_path):
    return write_text(tmp_path / "corpus.txt", random_sentences(60))


@pytest.mark.parametrize("is_quick", [True, False])
def test_auto_precision_is_decided_once_for_a_run(is_quick, corpus, tmp_path, monkeypatch):
    def run(**options):
        pretrain(CONFIG, [corpus], tmp_path / "run", RunOptions(device="cpu", **options))
        record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
        return record["config"]["train"]["precision"]

    monkeypatch.setattr(start, "has_quick_bf16", lambda device: is_quick)
    chosen = run(limits=SHORT)
    assert chosen == ("bf16" if is_quick else "fp32")
    monkeypatch.setattr(start, "has_quick_bf16", lambda device: not is_quick)
    assert run(limits=Limits(tokens=200), resume=True) == chosen


def test_a_resumed_run_keeps_its_limit_unless_another_is_given(corpus, tmp_path, caplog):
    def run(limits, **options):
        options = RunOptions(limits=limits, device="cpu", **options)
        return pretrain(CONFIG, [corpus], tmp_path / "run", options).progress.tokens

    assert run(SHORT) == 100
    with caplog.at_level("INFO"):
        assert run(Limits(), resume=True) == 100
        assert "--tokens 100" in caplog.text
        assert run(Limits(tokens=140), resume=True) == 140
        assert run(Limits(), resume=True) == 140


def test_a_wrong_corpus_does_not_take_the_directory(corpus, tmp_path):
    options, run_dir = RunOptions(limits=SHORT, device="cpu"), tmp_path / "run"
    with pytest.raises(FileNotFoundError):
        pretrain(CONFIG, [tmp_path / "corpsu.txt"], run_dir, options)
    wrong = dataclasses.replace(options, valid=[tmp_path / "vaild.txt"])
    with pytest.raises(FileNotFoundError):
        pretrain(CONFIG, [corpus], run_dir, wrong)
    assert not run_dir.exists()
    small = write_text(tmp_path / "small.txt", [["a", "boat"]] * 8)
    with pytest.raises(ValueError, match="4 rows x 5"):
        pretrain(CONFIG, [small], run_dir, options)
    pretrain(CONFIG, [corpus], run_dir, options)


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "num_samples"), [("full", None), ("sampled", 5)])
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 2e-3), ("bf16", 0.05)])
def test_a_gpu_learns_what_a_cpu_learns(kind, num_samples, precision, tolerance, corpus, tmp_path):
    """Also when stopped and resumed; the model of a GPU is read on the CPU."""
    softmax = SoftmaxConfig(kind=kind, **({"num_samples": num_samples} if num_samples else {}))
    train = dataclasses.replace(CONFIG.train, precision=precision, ema_decay=0.9)
    model = dataclasses.replace(CONFIG.model, dropout=0.0)  # masks are drawn on the device
    config = dataclasses.replace(CONFIG, softmax=softmax, train=train, model=model)
    found = {}
    for device in ("cpu", "cuda"):
        run_dir = tmp_path / device
        pretrain(config, [corpus], run_dir, RunOptions(limits=Limits(tokens=200), device=device))
        longer = RunOptions(limits=Limits(tokens=400), resume=True, device=device)
        found[device] = pretrain(config, [corpus], run_dir, longer).perplexity.mean
        again = perplexity(load_model(run_dir), random_sentences(20)).mean
        found[f"{device}, on other sentences"] = again
    assert found["cuda"] == pytest.approx(found["cpu"], rel=tolerance)
    expected = pytest.approx(found["cpu, on other sentences"], rel=tolerance)
    assert found["cuda, on other sentences"] == expected
