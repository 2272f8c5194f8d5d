from pathlib import Path

import pytest

from elmokit.experiments.definitions import EXPERIMENTS, find_experiment
from elmokit.tasks.registry import TASKS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_whole(name):
    experiment = find_experiment(name)
    assert experiment.name == name
    assert experiment.tables or experiment.probe
    assert bool(experiment.tasks) != (experiment.probe is not None)
    names = [condition.name for condition in experiment.conditions]
    assert len(set(names)) == len(names)
    assert experiment.reference is None or experiment.reference in names
    assert {condition.tuned_name for condition in experiment.conditions} <= set(names)
    assert {settings.task for settings in experiment.tasks} <= set(TASKS)
    datasets = [settings.dataset for settings in experiment.tasks]
    assert len(set(datasets)) == len(datasets)  # metadata is kept by data set
    guide = (ROOT / "docs/guides/experiments.md").read_text(encoding="utf-8")
    assert f"`{name}`" in guide
