"""Trainings in their directory: stopped and resumed; nothing is promised falsely."""

import os
import signal
from functools import partial

import pytest
import torch
from safetensors.torch import load_file

from elmokit.errors import ConfigError, Stopped
from elmokit.jobs.job import read_log
from elmokit.tasks.runs import training as training_module
from elmokit.tasks.runs.run_dir import read_metadata
from elmokit.tasks.task import TaskScore

from ....builders.task_models import toy_model

TABLE = "text\tlabel\n" + "".join(
    f"{'by the river' if number % 3 else 'I sat'} {number}\t{'good' if number % 2 else 'bad'}\n"
    for number in range(10)
)
UPDATES = 5  # of an epoch


@pytest.fixture
def train(train, write):
    path, vectors = write(TABLE), write("sat 1 2\nriver 3 4\n", name="vectors.txt")

    def train_sentiment(name, *, stop_at=None, data=path, dev=path, settings=(), **options):
        """Train; ``stop_at`` sends SIGTERM after this update."""

        def on_step(step):
            if step.done == stop_at:
                os.kill(os.getpid(), signal.SIGTERM)

        options |= {"vectors": vectors, "save_on_signals": True, "on_step": on_step}
        usual = {"epochs": 3, "schedule": "cosine", "inputs": {"positions": "input"}}
        return train("sentiment", data, name, dev=dev, options=options, **usual | dict(settings))

    return train_sentiment


def log_of(run_dir):
    rows = read_log(run_dir / "metrics.jsonl")
    return [{name: row[name] for name in row if name != "seconds"} for row in rows]


def have_the_same_weights(*runs):
    first, second = (load_file(run / "model.safetensors") for run in runs)
    return first.keys() == second.keys() and all(torch.equal(first[n], second[n]) for n in first)


def test_a_resumed_training_is_bit_for_bit_one_that_was_never_stopped(train, tmp_path):
    whole, stops = train("whole"), (2, UPDATES, 2 * UPDATES + 1)
    for stop in stops:
        with pytest.raises(Stopped) as caught:
            train("run", stop_at=stop, resume=stop != stops[0])
        assert caught.value.signal_number == signal.SIGTERM
        assert "--resume" in "".join(caught.value.__notes__)
    resumed = train("run", resume=True)
    places = tmp_path / "whole", tmp_path / "run"
    for read in (log_of, read_metadata):
        assert read(places[0]) == read(places[1])
    assert have_the_same_weights(*places)
    assert (resumed.best.epoch, resumed.best.loss) == (whole.best.epoch, whole.best.loss)
    assert resumed.num_epochs == whole.num_epochs == 3


def test_the_model_of_an_epoch_that_is_made_again_does_not_stay(train, tmp_path, monkeypatch):
    def scored(*scores):
        script = map(partial(TaskScore, "accuracy"), scores)
        monkeypatch.setattr(training_module, "score_model", lambda *_: next(script))

    def killed_in_the_third_epoch(self, pieces):
        if self.state.best is not None and self.state.best.epoch == 3:
            raise KeyboardInterrupt
        save(self, pieces)

    settings, save = {"schedule": "constant"}, training_module.TaskTraining.save
    with monkeypatch.context() as patch:
        patch.setattr(training_module.TaskTraining, "save", killed_in_the_third_epoch)
        scored(10.0, 5.0, 20.0)
        with pytest.raises(KeyboardInterrupt):
            train("run", settings=settings)
    scored(3.0)
    assert train("run", settings=settings | {"learning_rate": 0.1}, resume=True).best.epoch == 1
    scored(10.0, 5.0, 3.0)
    train("whole", settings=settings)
    assert read_metadata(tmp_path / "run")["dev"]["value"] == 10
    assert have_the_same_weights(tmp_path / "whole", tmp_path / "run")


def test_a_resumed_training_has_its_own_data_and_settings(train, tmp_path, write):
    train("run", settings={"epochs": 1})
    other = write(TABLE + "left\tgood\n", name="other.tsv")
    toy_model(seed=9).save(tmp_path / "other")
    for key, changed in {
        "train": {"data": other}, "dev": {"dev": other}, "precision": {"precision": "bf16"},
        "bilm": {"model": str(tmp_path / "other")}, "vectors": {},
    }.items():  # fmt: skip
        if key == "vectors":
            write("sat 1 2\nriver 3 5\n", name="vectors.txt")
        with pytest.raises(ConfigError, match=rf"run\.json: .*{key}\S* was "):
            train("run", settings={"epochs": 1}, resume=True, **changed)


def test_only_the_layers_of_sentences_that_are_read_are_computed(train):
    computed = []

    def note(done, total):
        if done == total:
            computed.append(total)

    for name in ("run", "again"):
        train(name, settings={"epochs": 1, "label_share": 0.3}, on_layers=note)
    assert computed == [3, 10]
