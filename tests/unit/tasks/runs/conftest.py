"""Trainings on the layers of a toy biLM."""

import pytest


@pytest.fixture
def train(tmp_path, model_dir):
    """Train on a file, by default for an epoch; ``options`` are those of `train_task`."""
    from elmokit.tasks.inputs.settings import InputSettings
    from elmokit.tasks.runs.run_dir import TaskRunConfig, TaskTrainConfig
    from elmokit.tasks.runs.train_task import train_task

    def train(task, path, place="run", *, dev=None, inputs=None, options=None, **settings):
        config = TaskRunConfig(
            task=task, hidden_dims=(8,), inputs=InputSettings(**(inputs or {})),
            train=TaskTrainConfig(**{"epochs": 1, "batch_size": 2} | settings),
        )  # fmt: skip
        options = {"model": str(model_dir), "cache_dir": tmp_path / "layers"} | (options or {})
        return train_task(config, path, dev or path, tmp_path / place, **options)

    return train


@pytest.fixture
def ner_run(train, write):
    """The directory of a run that has learned some named entities."""
    from ....builders.task_models import ENTITIES

    path = write(ENTITIES, name="ner.conll")
    return train("ner", path, epochs=20, learning_rate=0.05, patience=20).run_dir
