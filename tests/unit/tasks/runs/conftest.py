"""A trained run of named entities, which tests may copy but not change."""

import shutil

import pytest


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory):
    from elmokit.tasks.runs.run_dir import TaskRunConfig
    from elmokit.tasks.runs.train_task import train_task
    from elmokit.tasks.runs.training import TaskTrainConfig

    from ....builders.task_models import ENTITIES, toy_model

    folder = tmp_path_factory.mktemp("trained")
    toy_model().save(folder / "bilm")
    data = folder / "ner.conll"
    data.write_text(ENTITIES, encoding="utf-8")
    config = TaskRunConfig(
        task="ner", hidden_dims=(8,), dropout=0.0,
        train=TaskTrainConfig(epochs=25, batch_size=2, learning_rate=0.03, patience=30),
    )  # fmt: skip
    train_task(
        config, data, data, folder / "run", model=str(folder / "bilm"), cache_dir=folder / "layers"
    )
    return folder


@pytest.fixture
def ner_run(trained_once, tmp_path):
    """A copy of the run; ``ner.conll`` and ``bilm`` are beside the original."""
    shutil.copytree(trained_once / "run", tmp_path / "run")
    return tmp_path / "run"
