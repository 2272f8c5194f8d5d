"""What experiments are: their definitions, their runs and learning rates."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from elmokit.errors import InputError
from elmokit.experiments import definitions
from elmokit.experiments import plan as planning
from elmokit.experiments.definitions import EXPERIMENTS, TASKS, Condition, find_experiment

from ...builders.experiment_runs import result

TABLE1 = find_experiment("table1")
STATIC, ELMO = TABLE1.conditions
NER, NLI, SRL = TASKS["ner"], TASKS["nli"], TASKS["srl"]
FACTS = {task.dataset: {"model": "abc", "data": task.dataset} for task in TABLE1.tasks}


def plan(*, conditions=(STATIC, ELMO), tasks=(NER, NLI), shares=(1.0, 0.1), max_seeds=None, **more):
    experiment = replace(TABLE1, conditions=conditions, shares=shares, max_seeds=max_seeds)
    return planning.plan_tasks(experiment, tasks, **{"seeds": 2, "metadata": FACTS} | more)


def test_complete_comparisons_come_first():
    runs = plan()
    keys = [(run.seed, run.share, run.task, run.condition) for run in runs]
    assert keys == list(product((0, 1), (1.0, 0.1), ("ner", "nli"), ("static", "elmo")))
    # a condition may be of some tasks and a task of some shares
    only_nli = replace(ELMO, tasks=("nli",))
    only_all = replace(NER, shares=(1.0,))
    runs = plan(conditions=(STATIC, only_nli), tasks=(only_all, NLI), seeds=1)
    of_nli = product(("nli",), ("static", "elmo"), (1.0, 0.1))
    keys = {(run.task, run.condition, run.share) for run in runs}
    assert keys == {("ner", "static", 1.0), *of_nli}


def test_what_decides_a_run_decides_its_id_and_nothing_else():
    runs = plan()
    assert len({run.id for run in runs}) == 16
    renamed = [replace(run, condition="another name") for run in runs]
    assert [run.id for run in renamed] == [run.id for run in plan()]
    other_model = {name: {**facts, "model": "xyz"} for name, facts in FACTS.items()}
    for changed in (plan(overrides=["train.epochs=3"]), plan(metadata=other_model)):
        assert not {run.id for run in changed} & {run.id for run in runs}
    read = [run.metadata["config"]["inputs"] for run in runs]
    assert {(one["characters"], one["static_scale"]) for one in read} == {(True, "learned")}


def test_seeds_are_those_of_the_task_fewer_for_controls_unless_they_are_given():
    control = Condition(name="control", overrides=("inputs.embeddings=top",), is_control=True)

    def seeds(tasks=(NER, SRL), **more):
        runs = plan(tasks=tasks, conditions=(ELMO, control), shares=(1.0,), **more)
        return Counter((run.task, run.condition) for run in runs)

    usual, few = definitions.SEEDS, definitions.CONTROL_SEEDS
    assert seeds(seeds=None) == {
        ("ner", "elmo"): 5, ("srl", "elmo"): usual, ("ner", "control"): few,
        ("srl", "control"): few,
    }  # fmt: skip
    assert set(seeds(seeds=4).values()) == {4}
    assert set(seeds(seeds=None, max_seeds=1).values()) == {1}


def test_rates_are_tuned_for_every_condition_or_for_another_one():
    average = ("inputs.embeddings=average",)
    follower = Condition(name="average", overrides=average, tuned_as="elmo")
    experiment = replace(TABLE1, conditions=(STATIC, ELMO, follower))
    tuning = planning.plan_tuning(experiment, [NER], metadata=FACTS, overrides=())
    usual = NER.learning_rate
    assert [(run.condition, run.learning_rate / usual) for run in tuning] == [
        (condition, factor) for factor in planning.RATE_FACTORS for condition in ("static", "elmo")
    ]
    static, elmo = ([run for run in tuning if run.condition == name] for name in ("static", "elmo"))
    outcomes = {static[0].id: result(99.0, epochs=[40.0, 39.0]),  # dev chooses nothing
                static[1].id: result(45.0, epochs=[41.0, 45.0])}  # fmt: skip
    keys = (NER.dataset, "static"), (NER.dataset, "elmo")
    assert planning.best_rates(tuning, outcomes) == ({}, dict.fromkeys(keys, planning.NOT_TUNED))
    outcomes |= dict.fromkeys((static[2].id, *(run.id for run in elmo)), "diverged")
    rates, missing = planning.best_rates(tuning, outcomes)
    assert (rates, missing) == ({keys[0]: usual / 2}, {keys[1]: planning.ALL_DIVERGED})
    runs = plan(tasks=(NER,), conditions=experiment.conditions, rates={keys[1]: 0.5})
    used = {run.condition: run.learning_rate for run in runs}
    assert used == {"static": usual, "elmo": 0.5, "average": 0.5}


@pytest.mark.parametrize(
    "override", ["task=nli", "train.seed=3", "train={epochs=3}", " inputs . layer_l2 = 0.1"]
)
def test_what_is_compared_cannot_be_set(override):
    other = Condition(name="λ = 1", overrides=(*ELMO.overrides, "inputs.layer_l2=1.0"))
    with pytest.raises(InputError, match="cannot be set"):
        plan(conditions=(STATIC, other), overrides=[override])
    runs = plan(overrides=["inputs.layer_l2=0.5", "dropout=0.3"])  # which others compare
    configs = [run.metadata["config"] for run in runs]
    assert {(one["inputs"]["layer_l2"], one["dropout"]) for one in configs} == {(0.5, 0.3)}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_whole(name, repository_dir):
    experiment = EXPERIMENTS[name]
    assert experiment.tables or experiment.probe
    assert bool(experiment.tasks) != (experiment.probe is not None)
    names = [condition.name for condition in experiment.conditions]
    assert len(set(names)) == len(names)
    assert experiment.reference is None or experiment.reference in names
    assert {condition.tuned_name for condition in experiment.conditions} <= set(names)
    datasets = [settings.dataset for settings in experiment.tasks]
    assert len(set(datasets)) == len(datasets)  # metadata is kept by data set
    guide = (repository_dir / "docs/guides/experiments.md").read_text(encoding="utf-8")
    assert f"`{name}`" in guide
