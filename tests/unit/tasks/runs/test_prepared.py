"""A training before it begins: what is read, what is refused, what is written down of it."""

from pathlib import Path

import pytest
import torch

from elmokit.errors import InputError
from elmokit.files.hashing import file_sha256
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.tasks.runs.examples import TaskFiles
from elmokit.tasks.runs.train_task import prepare_task, train_task
from elmokit.tasks.runs.training import TaskTrainConfig

ENTITIES = "Minji B-PER\nsat O\n\nby O\nBank B-LOC\n\n"
STATIC = InputSettings(embeddings="static")
NONE = InputSettings(embeddings="none")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "train.conll").write_text(ENTITIES, encoding="utf-8")
    (tmp_path / "dev.conll").write_text("Bank B-LOC\nsat O\n\n", encoding="utf-8")
    (tmp_path / "test.conll").write_text("Kim B-PER\nsat O\n\n", encoding="utf-8")
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("minji 1 0\nsat 0 1\nbank 1 1\nkim 2 2\nriver 3 3\n", encoding="utf-8")
    return TaskFiles(
        train=tmp_path / "train.conll", dev=tmp_path / "dev.conll", test=tmp_path / "test.conll",
        vectors=vectors,
    )  # fmt: skip


def prepare(files, inputs=STATIC, **train):
    config = TaskRunConfig(
        task="ner", hidden_dims=(4,), inputs=inputs, train=TaskTrainConfig(epochs=1, **train)
    )
    return prepare_task(
        config, files, model=None, precision="fp32", device="cpu", cache_dir=None,
        on_layers=None,
    )  # fmt: skip


def test_what_is_written_down_of_a_training(files):
    prepared = prepare(files, lowercase_share=1.0)
    metadata = prepared.metadata()
    assert len(prepared.examples.train) == 4, "two sentences, and both in lower case"
    assert metadata["data"] == {"train": str(files.train), "dev": str(files.dev), "examples": 2}
    assert metadata["labels"] == prepared.examples.labels
    assert metadata["bilm"] is None
    assert metadata["config"]["train"]["batch_size"], "the task's default"
    assert prepared.inputs() == {
        "train": file_sha256(files.train), "dev": file_sha256(files.dev), "precision": "fp32",
        "vectors": metadata["vectors"]["sha256"], "bilm": None,
    }  # fmt: skip


def test_the_seed_draws_the_network(files):
    first, again, other = (prepare(files, seed=seed).network.state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_words_of_the_test_set_are_looked_up_when_it_is_scored(files):
    prepared = prepare(files)
    assert prepared.static is not None
    assert "kim" not in prepared.static.words
    score = prepared.score_test()
    assert score is not None
    assert score.metric == "span F1"
    assert "kim" in prepared.maker.static.words
    assert "river" not in prepared.maker.static.words


def test_files_of_other_labels_are_refused_before_training(files):
    for name in ("dev", "test"):
        before = getattr(files, name).read_text(encoding="utf-8")
        getattr(files, name).write_text("Minji B-GPE\nsat O\n\n", encoding="utf-8")
        with pytest.raises(InputError, match=rf"{name}\.conll"):
            prepare(files)
        getattr(files, name).write_text(before, encoding="utf-8")


def test_what_is_read_twice_is_no_stream(tmp_path):
    with pytest.raises(InputError, match=r"^-: .*task data must be read twice"):
        prepare(TaskFiles(train=Path("-"), dev=tmp_path / "dev.txt"), NONE)


def test_one_label_teaches_nothing(tmp_path):
    data = tmp_path / "data.tsv"
    data.write_text("text\tlabel\ngood\t+\nfine\t+\n", encoding="utf-8")
    config = TaskRunConfig(task="sentiment", inputs=NONE)
    with pytest.raises(InputError, match=r"data\.tsv: .*'\+'"):
        train_task(config, data, data, tmp_path / "run")
