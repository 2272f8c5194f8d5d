"""`--resume` means one thing in every long command.

Go on if the directory holds the same unfinished job, start if it holds none, refuse everything
else and say what differs. Without it, a directory that holds a job is refused. A job that was
stopped and resumed leaves, bit for bit, what one leaves that was never stopped.
"""

from dataclasses import dataclass, replace

import pytest
from safetensors.torch import load_file

from elmokit.corpus.preparation import VocabConfig
from elmokit.corpus.text_shards import TextConfig
from elmokit.embed import job as embed_job
from elmokit.embed.embedder import Embedder
from elmokit.errors import ConfigError
from elmokit.experiments.run_experiment import ExperimentOptions, run_experiment
from elmokit.files.json_files import read_json
from elmokit.tasks.runs.run_dir import TaskRunConfig, TaskTrainConfig
from elmokit.tasks.runs.train_task import train_task
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.training.pretraining.finetune import FinetuneConfig, finetune
from elmokit.training.pretraining.run import PretrainConfig, RunOptions, pretrain
from elmokit.training.pretraining.run_config import TrainConfig
from elmokit.training.schedules import Limits

from ..builders.embedding_models import embed_files, read_hdf5
from ..builders.embedding_models import toy_model as toy_embedder
from ..builders.experiment_data import write_data, write_vectors
from ..builders.task_models import saved_toy_model
from ..builders.task_models import toy_model as toy_task_model
from ..builders.training_models import (
    FULL_SOFTMAX,
    random_sentences,
    toy_config,
    toy_model,
    write_text,
)

TRAIN = TrainConfig(batch_size=4, unroll_steps=5, log_steps=1, checkpoint_steps=2)
OPTIONS = RunOptions(limits=Limits(tokens=8 * 4 * 5), device="cpu")


class Interrupted(BaseException):
    """Ends a job somewhere on its way, as a kill does."""


@dataclass
class Calls:
    """Interrupts a job at a call of its listener."""

    at: int | None
    count: int = 0

    def __call__(self, *_):
        self.count += 1
        if self.count == self.at:
            raise Interrupted


class Pretrain:
    changed = "train.seed"

    def __init__(self, folder, _):
        self.corpus = write_text(folder / "corpus.txt", random_sentences(60))

    def run(self, place, *, resume, seed=0, stop_at=None):
        config = PretrainConfig(
            text=TextConfig(tokenizer=TokenizerConfig(name="whitespace")), model=toy_config(),
            vocab=VocabConfig(min_count=1), softmax=FULL_SOFTMAX, train=replace(TRAIN, seed=seed),
        )  # fmt: skip
        options = replace(OPTIONS, resume=resume, on_event=Calls(stop_at))
        pretrain(config, [self.corpus], place, options)

    def result(self, place):
        tensors = load_file(place / "model.safetensors")
        return {name: tensor.tolist() for name, tensor in tensors.items()}


class Finetune(Pretrain):
    def __init__(self, folder, models):
        super().__init__(folder, models)
        toy_model().save(folder / "base")
        self.base = str(folder / "base")

    def run(self, place, *, resume, seed=0, stop_at=None):
        config = FinetuneConfig(train=replace(TRAIN, seed=seed))
        options = replace(OPTIONS, resume=resume, on_event=Calls(stop_at))
        finetune(config, self.base, [self.corpus], place, options)


class Train(Pretrain):
    def __init__(self, folder, models):
        self.model = str(saved_toy_model(models))
        rows = "".join(f"I sat {k}\t{'good' if k % 2 else 'bad'}\n" for k in range(8))
        self.table = folder / "data.tsv"
        self.table.write_text(f"text\tlabel\n{rows}", encoding="utf-8")

    def run(self, place, *, resume, seed=0, stop_at=None):
        config = TaskRunConfig(
            task="sentiment", hidden_dims=(4,),
            train=TaskTrainConfig(epochs=2, batch_size=2, seed=seed),
        )  # fmt: skip
        train_task(
            config, self.table, self.table, place, model=self.model, resume=resume,
            cache_dir=place.parent / "layers", on_step=Calls(stop_at),
        )  # fmt: skip


class Embed:
    changed = "layers"

    def __init__(self, folder, _):
        self.embedder = Embedder(toy_embedder())
        self.text = write_text(folder / "text.txt", random_sentences(20))

    def run(self, place, *, resume, seed=0, stop_at=None):
        layers = "top" if seed else "all"
        embed_files(
            self.embedder, self.text, place.with_suffix(".h5"), layers=layers, resume=resume,
            batch_tokens=8, on_progress=Calls(stop_at),
        )  # fmt: skip

    def result(self, place):
        vectors = read_hdf5(place.with_suffix(".h5"))
        return {key: rows.tolist() for key, rows in vectors.items()}


class Experiment:
    changed = "--set"

    def __init__(self, folder, _):
        write_data(folder / "data")
        write_vectors(folder / "vectors.txt")
        toy_task_model().save(folder / "model")
        self.folder = folder

    def run(self, place, *, resume, seed=0, stop_at=None):
        options = ExperimentOptions(
            data_dir=self.folder / "data", vectors=self.folder / "vectors.txt",
            model=str(self.folder / "model"), output=place, resume=resume, seeds=1, tasks=("nli",),
            overrides=("train.epochs=2", f"hidden_dims=[{4 + seed}]"),
            cache_dir=self.folder / "layers",
        )  # fmt: skip
        run_experiment("table1", options, Calls(stop_at))

    def result(self, place):
        results = read_json(place / "results.json", advice="")
        return [(run["id"], run["value"], run["epochs"]) for run in results["runs"]]


FAMILY = {
    "pretrain": Pretrain, "finetune": Finetune, "train": Train, "embed": Embed,
    "experiment": Experiment,
}  # fmt: skip


@pytest.fixture(params=FAMILY)
def command(request, tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(embed_job, "PART_SENTENCES", 4)
    return FAMILY[request.param](tmp_path, tmp_path_factory)


def left_by(place):
    names = (place, place.with_suffix(".h5"), place.with_suffix(".h5.parts"))
    files = [file for name in names for file in (name, *name.rglob("*")) if file.is_file()]
    return {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def refused(command, place):
    """Neither a new job nor another one takes the place of the one that is there."""
    before = left_by(place)
    assert before
    with pytest.raises(FileExistsError, match=r"--resume|--overwrite"):
        command.run(place, resume=False)
    with pytest.raises(ConfigError, match=rf"{command.changed} was .* and is now "):
        command.run(place, resume=True, seed=7)
    assert left_by(place) == before


def test_a_stopped_job_goes_on_to_the_same_result_and_a_finished_one_is_left_as_it_is(
    command, tmp_path
):
    whole, run = tmp_path / "whole", tmp_path / "run"
    command.run(whole, resume=True)  # there is none: it starts
    with pytest.raises(Interrupted):
        command.run(run, resume=False, stop_at=6)
    refused(command, run)
    for _ in range(2):  # goes on, then finds that it is finished
        command.run(run, resume=True)
        assert command.result(run) == command.result(whole)
        refused(command, run)
