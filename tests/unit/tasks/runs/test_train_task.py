"""Trainings in their directory: stopped, resumed, limited in time; nothing is promised falsely."""

import json
import os
import signal

import pytest
import torch
from safetensors.torch import load_file

from elmokit.errors import ConfigError, InputError, Stopped
from elmokit.tasks.inputs import layer_cache
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.runs import training as training_module
from elmokit.tasks.runs.run_dir import TaskRunConfig
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import PreparedTask, train_task
from elmokit.tasks.runs.training import TaskTrainConfig
from elmokit.tasks.task import TaskScore

from ....builders.task_models import toy_model

TABLE = "text\tlabel\n" + "".join(
    f"{'by the river' if number % 3 else 'I sat'} {number}\t{'good' if number % 2 else 'bad'}\n"
    for number in range(10)
)
UPDATES = 5  # of an epoch


@pytest.fixture
def train(tmp_path, model_dir):
    path = tmp_path / "data.tsv"
    path.write_text(TABLE, encoding="utf-8")
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("sat 1 2\nriver 3 4\n", encoding="utf-8")

    def train(
        name, *, stop_at=None, data=path, dev=path, settings=None, model=model_dir, **options
    ):
        """Train; ``stop_at`` sends SIGTERM at (stage, done)."""

        def on_step(step):
            if (step.stage, step.done) == stop_at:
                os.kill(os.getpid(), signal.SIGTERM)

        config = TaskRunConfig(
            task="sentiment", hidden_dims=(6,), inputs=InputSettings(positions="input"),
            train=TaskTrainConfig(
                **{"epochs": 3, "batch_size": 2, "schedule": "cosine"} | (settings or {})
            ),
        )  # fmt: skip
        return train_task(
            config, data, dev, tmp_path / name, model=str(model), vectors=vectors,
            cache_dir=tmp_path / "layers", save_on_signals=True, on_step=on_step, **options,
        )  # fmt: skip

    return train


def log_of(run_dir):
    rows = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def assert_same_run(a, b):
    assert log_of(a) == log_of(b)
    first, second = (load_file(run / "model.safetensors") for run in (a, b))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert json.loads((a / "task.json").read_text()) == json.loads((b / "task.json").read_text())


@pytest.mark.parametrize(
    "stops",
    [
        [("training", 2), ("training", UPDATES), ("training", 2 * UPDATES + 1)],
        [("scoring dev", 0), ("scoring dev", 10)],
    ],
)
def test_a_resumed_training_is_bit_for_bit_one_that_was_never_stopped(stops, train, tmp_path):
    whole = train("whole")
    for stop in stops:
        with pytest.raises(Stopped) as caught:
            train("run", stop_at=stop, resume=stop != stops[0])
        assert caught.value.signal_number == signal.SIGTERM
        assert "--resume" in "".join(caught.value.__notes__)
    resumed = train("run", resume=True)
    assert_same_run(tmp_path / "whole", tmp_path / "run")
    assert (resumed.best.epoch, resumed.best.loss) == (whole.best.epoch, whole.best.loss)
    assert resumed.num_epochs == whole.num_epochs == 3
    assert resumed.is_complete


class Killed(BaseException):
    pass


def kill_before_the_checkpoint_of(epoch, monkeypatch):
    save = training_module.TaskTraining.save

    def killed(self, pieces):
        if self.state.best is not None and self.state.best.epoch == epoch:
            raise Killed
        save(self, pieces)

    monkeypatch.setattr(training_module.TaskTraining, "save", killed)


def test_the_model_of_an_epoch_that_is_made_again_does_not_stay(train, tmp_path, monkeypatch):
    def scored(*scores):
        values = iter(scores)
        score = lambda *_: TaskScore("accuracy", next(values))  # noqa: E731
        monkeypatch.setattr(training_module, "score_model", score)

    settings = {"schedule": "constant"}
    with monkeypatch.context() as patch:
        kill_before_the_checkpoint_of(3, patch)
        scored(10.0, 5.0, 20.0)
        with pytest.raises(Killed):
            train("run", settings=settings)
    scored(3.0)
    assert train("run", settings=settings | {"learning_rate": 0.1}, resume=True).best.epoch == 1
    scored(10.0, 5.0, 3.0)
    train("whole", settings=settings)
    assert json.loads((tmp_path / "run/task.json").read_text())["dev"]["value"] == 10
    first, second = (load_file(tmp_path / run / "model.safetensors") for run in ("whole", "run"))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_limit_of_time_ends_it_with_the_best_epoch(train, tmp_path, monkeypatch):
    seconds = iter(range(10_000))
    monkeypatch.setattr(training_module.time, "monotonic", lambda: float(next(seconds)))
    stopped = train("run", settings={"epochs": 1000, "patience": 1000}, minutes=1)
    assert not stopped.is_complete
    assert 1 <= stopped.num_epochs < 30
    assert TaskRun.load(tmp_path / "run").labels == ["bad", "good"]
    rows = log_of(tmp_path / "run")
    more = train("run", settings={"epochs": 1000, "patience": 1000}, minutes=2, resume=True)
    assert log_of(tmp_path / "run")[: len(rows)] == rows
    assert more.num_epochs > stopped.num_epochs
    with pytest.raises(InputError, match="--minutes"):
        train("other", minutes=0)
    with pytest.raises(InputError, match="--minutes"):  # no update can be made
        train("other", minutes=1e-7)
    assert not (tmp_path / "other").exists()


def test_a_resumed_training_has_its_own_data_and_settings(train, tmp_path):
    train("run", settings={"epochs": 1})
    other = tmp_path / "other.tsv"
    other.write_text(TABLE + "left\tgood\n", encoding="utf-8")
    toy_model(seed=9).save(tmp_path / "other")
    for key, changed in (
        ("train", {"data": other}), ("dev", {"dev": other}), ("precision", {"precision": "bf16"}),
        ("bilm", {"model": tmp_path / "other"}),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=rf"run\.json: .*{key}\S* was "):
            train("run", settings={"epochs": 1}, resume=True, **changed)
    (tmp_path / "vectors.txt").write_text("sat 1 2\nriver 3 5\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"run\.json: .*vectors was "):
        train("run", settings={"epochs": 1}, resume=True)


def test_words_of_the_test_set_are_looked_up_when_it_is_scored(tmp_path):
    paths = [tmp_path / f"{name}.conll" for name in ("train", "dev", "test")]
    for path, text in zip(paths, ("Minji B-PER\nat O\n", "at O\n", "Kim O\n"), strict=True):
        path.write_text(text, encoding="utf-8")
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("minji 1 0\nkim 2 2\nriver 3 3\n", encoding="utf-8")
    config = TaskRunConfig(
        task="ner", hidden_dims=(4,), inputs=InputSettings(embeddings="static")
    )  # fmt: skip
    prepared = PreparedTask(
        config, *paths, vectors, model=None, precision="fp32", device="cpu", cache_dir=None,
        on_layers=None,
    )  # fmt: skip
    assert list(prepared.network.static.words) == ["minji"]
    assert prepared.score_test().metric == "span F1"
    assert list(prepared.network.static.words) == ["minji", "kim"]


def test_only_the_layers_of_sentences_that_are_read_are_computed(train, monkeypatch):
    computed = []
    write = layer_cache._write

    def note(embedder, sentences, *others):
        computed.append(len(sentences))
        write(embedder, sentences, *others)

    monkeypatch.setattr(layer_cache, "_write", note)
    for name in ("run", "again"):
        train(name, settings={"epochs": 1, "label_share": 0.3})
    assert computed == [3, 10]
