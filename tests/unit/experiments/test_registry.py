import pytest

from elmokit.errors import InputError
from elmokit.experiments.registry import EXPERIMENTS, choose_tasks, find_experiment
from elmokit.tasks.registry import TASKS


def test_all_tables_and_figures_are_there():
    assert list(EXPERIMENTS) == [
        "table1", "table2", "table3", "table4", "table5", "table6", "figure1", "figure2", "korean",
    ]  # fmt: skip
    six = ["ner", "srl", "sentiment", "nli", "qa", "coref"]
    assert [task.task for task in EXPERIMENTS["table1"].tasks] == six


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_experiment_is_whole(experiment):
    assert experiment.tables
    assert bool(experiment.tasks) != (experiment.probe is not None)
    names = [condition.name for condition in experiment.conditions]
    assert len(set(names)) == len(names)
    assert experiment.reference is None or experiment.reference in names
    assert {settings.task for settings in experiment.tasks} <= set(TASKS)
    datasets = [settings.dataset for settings in experiment.tasks]
    assert len(set(datasets)) == len(datasets)  # facts are kept by data set


def test_the_names_are_told_for_a_wrong_one():
    with pytest.raises(InputError, match="'table7'; choose one of table1, table2"):
        find_experiment("table7")


def test_tasks_are_chosen_in_the_experiments_order():
    experiment = find_experiment("table1")
    assert [one.task for one in choose_tasks(experiment, ("nli", "ner"))] == ["ner", "nli"]
    with pytest.raises(InputError, match="table1 has no task 'pos'; choose of ner"):
        choose_tasks(experiment, ("pos",))
    with pytest.raises(InputError, match="it trains none"):
        choose_tasks(find_experiment("table5"), ("nli",))
