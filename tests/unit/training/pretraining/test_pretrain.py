"""Pre-training as a function: from text files to a model directory."""

import dataclasses
import json

import pytest

from elmokit.bilm.lstmp import LSTMConfig
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.corpus.preparation import VocabConfig
from elmokit.corpus.text_shards import TextConfig
from elmokit.evaluation.perplexity import perplexity
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.pretraining import start
from elmokit.training.pretraining.pretrain import (
    PretrainConfig,
    RunOptions,
    pretrain,
)
from elmokit.training.pretraining.run_config import TrainConfig, ValidationConfig
from elmokit.training.schedules import Limits
from elmokit.weights.model_dir import load_model

from ....builders.training_models import (
    random_sentences,
    toy_config,
    write_text,
)

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


class TestRunDirectory:
    def test_a_resumed_run_keeps_its_limit_unless_another_is_given(self, corpus, tmp_path, caplog):
        run_dir = tmp_path / "other"

        def run(limits, **options):
            options = RunOptions(limits=limits, device="cpu", **options)
            return pretrain(CONFIG, [corpus], run_dir, options).progress.tokens

        assert run(SHORT) == 100
        with caplog.at_level("INFO"):
            assert run(Limits(), resume=True) == 100
            assert "--tokens 100" in caplog.text
            assert run(Limits(tokens=140), resume=True) == 140
            assert run(Limits(), resume=True) == 140

    def test_a_mistyped_corpus_does_not_take_the_directory(self, corpus, tmp_path):
        run_dir = tmp_path / "new"
        with pytest.raises(FileNotFoundError):
            pretrain(
                CONFIG, [tmp_path / "corpsu.txt"], run_dir, RunOptions(limits=SHORT, device="cpu")
            )
        with pytest.raises(FileNotFoundError):
            pretrain(
                CONFIG, [corpus], run_dir, RunOptions(valid=[tmp_path / "vaild.txt"], device="cpu")
            )
        assert not run_dir.exists()
        pretrain(CONFIG, [corpus], run_dir, RunOptions(limits=SHORT, device="cpu"))


def test_a_corpus_smaller_than_a_batch_is_refused_and_does_not_take_the_directory(tmp_path):
    small = write_text(tmp_path / "small.txt", [["a", "boat"]] * 8)
    with pytest.raises(ValueError, match="64 rows x 20"):
        pretrain(
            dataclasses.replace(CONFIG, train=TrainConfig(batch_size=64, unroll_steps=20)),
            [small],
            tmp_path / "run",
            RunOptions(limits=SHORT, device="cpu"),
        )
    config = dataclasses.replace(CONFIG, train=TrainConfig(batch_size=1, unroll_steps=2))
    pretrain(config, [small], tmp_path / "run", RunOptions(limits=Limits(tokens=4), device="cpu"))


def test_a_few_sentences_are_learned_by_heart(tmp_path):
    """In both directions; only the first word read, one of 12, cannot be known."""
    sentences = [[f"begin{k}", "the", f"middle{k}", "of", f"end{k}"] for k in range(12)]
    corpus = write_text(tmp_path / "corpus.txt", sentences)
    lstm = LSTMConfig(cell_dim=32, projection_dim=16)
    model = dataclasses.replace(toy_config(word_input=True), lstm=lstm)
    config = dataclasses.replace(
        CONFIG,
        model=model,
        train=TrainConfig(batch_size=6, unroll_steps=6, num_epochs=60),
        optimizer=OptimizerConfig(learning_rate=0.05),
    )
    report = pretrain(
        config, [corpus], tmp_path / "run", RunOptions(valid=[corpus], device="cpu")
    ).perplexity
    least = 12 ** (1 / 6)
    assert least * 0.98 < report.forward < 2
    assert least * 0.98 < report.backward < 2


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
