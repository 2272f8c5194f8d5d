from dataclasses import replace
from pathlib import Path

import pytest

from elmokit.errors import InputError
from elmokit.experiments.definitions import EXPERIMENTS, find_experiment
from elmokit.tasks.registry import TASKS

ROOT = Path(__file__).parents[3]


def test_all_tables_and_figures_are_there():
    figures = {"figure1", "figure1_korean", "figure2"}
    assert {*(f"table{n}" for n in range(1, 7)), *figures, "korean"} <= {*EXPERIMENTS}
    six = ["ner", "srl", "sentiment", "nli", "qa", "coref"]
    assert [task.task for task in find_experiment("table1").tasks] == six


def test_experiments_have_their_runs_in_common():
    table, controls = find_experiment("table1"), find_experiment("controls")
    assert controls.tasks == table.tasks
    assert set(table.conditions) < set(controls.conditions)
    curve, korean = find_experiment("figure1_korean"), find_experiment("korean")
    assert set(curve.tasks) < set(korean.tasks)
    assert (curve.language, curve.conditions) == (korean.language, korean.conditions)
    gum = find_experiment("gum")
    same = replace(gum.tasks[0], dataset="coref-en-litbank", content=table.tasks[-1].content)
    assert same in table.tasks
    assert (gum.conditions, gum.shares) == (table.conditions, table.shares)


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


def test_the_names_are_told_for_a_wrong_one():
    with pytest.raises(InputError, match=r"'table7'.*table1, table2.*korean"):
        find_experiment("table7")
