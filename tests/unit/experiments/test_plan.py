import dataclasses
import re
from collections import Counter

import pytest

from elmokit.errors import InputError
from elmokit.experiments.definitions import (
    CONTROL_SEEDS,
    MAX_EPOCHS,
    SEEDS,
    TASKS,
    Condition,
    find_experiment,
)
from elmokit.experiments.plan import plan_tasks
from elmokit.tasks.registry import find_task

TABLE1 = find_experiment("table1")
STATIC, ELMO = TABLE1.conditions
NER, NLI, SRL = TASKS["ner"], TASKS["nli"], TASKS["srl"]
FACTS = {task.dataset: {"model": "abc", "data": task.dataset} for task in TABLE1.tasks}


def plan(
    *, conditions=(STATIC, ELMO), tasks=(NER, NLI), shares=(1.0, 0.1), seeds=2, max_seeds=None,
    metadata=FACTS, **more
):  # fmt: skip
    experiment = dataclasses.replace(
        TABLE1, conditions=conditions, shares=shares, max_seeds=max_seeds
    )  # fmt: skip
    return plan_tasks(experiment, tasks, seeds=seeds, metadata=metadata, **more)


def test_complete_comparisons_come_first():
    runs = plan()
    assert [(run.seed, run.share, run.task, run.condition) for run in runs[:5]] == [
        (0, 1.0, "ner", "static"),
        (0, 1.0, "ner", "elmo"),
        (0, 1.0, "nli", "static"),
        (0, 1.0, "nli", "elmo"),
        (0, 0.1, "ner", "static"),
    ]
    assert [run.seed for run in runs] == [0] * 8 + [1] * 8


def test_what_decides_a_run_decides_its_id_and_nothing_else():
    runs = plan()
    assert len({run.id for run in runs}) == 16
    assert [run.id for run in plan()] == [run.id for run in runs]
    renamed = [dataclasses.replace(run, condition="another name") for run in runs]
    assert [run.id for run in renamed] == [run.id for run in runs]
    changed = plan(overrides=["train.epochs=3"])
    assert not {run.id for run in changed} & {run.id for run in runs}
    other_model = {name: {**facts, "model": "xyz"} for name, facts in FACTS.items()}
    static, elmo = plan(tasks=(NER,), shares=(1.0,), seeds=1, metadata=other_model)
    assert elmo.id not in {run.id for run in runs}
    assert static.id in {run.id for run in runs}  # reads no biLM, so any will do
    as_wide = Condition(name="as wide", overrides=("inputs.embeddings=static_projected",))
    (wide,) = plan(tasks=(NER,), conditions=(as_wide,), shares=(1.0,), seeds=1)
    assert wide.metadata["model"] == "abc"  # as wide as the biLM
    inputs = [run.metadata["config"]["inputs"] for run in (*runs, wide)]
    assert {(one["characters"], one["static_scale"]) for one in inputs} == {(True, "learned")}


def test_a_condition_may_be_of_some_tasks_and_a_task_of_some_shares():
    only_nli = dataclasses.replace(ELMO, tasks=("nli",))
    only_all = dataclasses.replace(NER, shares=(1.0,))
    runs = plan(conditions=(STATIC, only_nli), tasks=(only_all, NLI), seeds=1)
    assert {(run.task, run.condition, run.share) for run in runs} == {
        ("ner", "static", 1.0), *(("nli", name, share) for name in ("static", "elmo")
                                  for share in (1.0, 0.1)),
    }  # fmt: skip


def test_what_the_task_leaves_open_is_the_papers_choice_written_out():
    explicit = Condition(name="λ = 0.001", overrides=(*ELMO.overrides, "inputs.layer_l2=0.001"))
    by_default, by_hand = (
        plan(tasks=(SRL,), conditions=(condition,), shares=(1.0,))[0]
        for condition in (ELMO, explicit)
    )
    assert by_default.id == by_hand.id  # one run for both experiments
    assert by_default.metadata["config"]["inputs"]["positions"] == "input"
    assert plan(tasks=(NLI,))[0].metadata["config"]["inputs"]["positions"] == "both"


def test_few_labels_get_more_passes_in_every_arm():
    train = {
        (run.share, run.condition): run.metadata["config"]["train"]
        for run in plan(tasks=(NLI,), shares=(1.0, 0.25, 0.0001))
    }
    assert train[1.0, "static"]["epochs"] == NLI.epochs
    assert train[0.25, "static"]["epochs"] == 2 * NLI.epochs
    assert train[0.25, "static"]["patience"] == 2 * NLI.patience
    assert train[0.0001, "elmo"]["epochs"] == MAX_EPOCHS
    assert train[0.0001, "elmo"]["label_share"] == 0.0001
    assert all(train[share, "static"] == train[share, "elmo"] for share in (1.0, 0.25, 0.0001))


def test_seeds_are_those_of_the_task_fewer_for_controls_unless_they_are_given():
    control = Condition(name="control", overrides=("inputs.embeddings=top",), is_control=True)
    conditions = (STATIC, ELMO, control)
    single = dataclasses.replace(SRL, seeds=1)

    def seeds(tasks=(NER, SRL), **more):
        runs = plan(tasks=tasks, conditions=conditions, shares=(1.0,), **more)
        return Counter((run.task, run.condition) for run in runs)

    found = seeds(seeds=None)
    assert 5 > SEEDS > CONTROL_SEEDS
    assert found["ner", "elmo"] == found["ner", "static"] == 5
    assert found["srl", "elmo"] == SEEDS
    assert found["ner", "control"] == found["srl", "control"] == CONTROL_SEEDS
    assert set(seeds(seeds=4).values()) == {4}
    assert set(seeds(seeds=None, max_seeds=2).values()) == {2}
    assert set(seeds((single,), seeds=None).values()) == {1}


def test_a_condition_may_get_the_rate_that_was_tuned_for_another():
    follower = Condition(
        name="average", overrides=("inputs.embeddings=average",), tuned_as="elmo"
    )  # fmt: skip
    rates = {("ner", NER.dataset, "elmo"): 0.5}
    runs = plan(
        tasks=(NER,), conditions=(STATIC, ELMO, follower), learning_rates=rates
    )  # fmt: skip
    found = {run.condition: run.metadata["config"]["train"]["learning_rate"] for run in runs}
    assert found == {"static": NER.learning_rate, "elmo": 0.5, "average": 0.5}


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("task=nli", "task"),
        ("train.seed=3", "train.seed"),
        ("train.label_share=0.5", "train.label_share"),
        ("train={epochs=3}", "train.seed"),
        ("inputs.embeddings=elmo", "inputs.embeddings"),
        (" inputs . layer_l2 = 0.1", "inputs.layer_l2"),
    ],
)
def test_what_is_compared_cannot_be_set(override, key):
    conditions = (
        STATIC,
        Condition(name="λ = 1", overrides=(*ELMO.overrides, "inputs.layer_l2=1.0")),
    )
    with pytest.raises(InputError, match=f"--set {re.escape(override)}: `{key}` "):
        plan(conditions=conditions, overrides=[override])
    runs = plan(overrides=["inputs.layer_l2=0.5"])  # which only other experiments compare
    assert {run.metadata["config"]["inputs"]["layer_l2"] for run in runs} == {0.5}


def test_a_bilm_cannot_learn_in_an_arm_without_one():
    with pytest.raises(InputError, match=r"train\.finetune_bilm=true .*'static'"):
        plan(overrides=["train.finetune_bilm=true"])
    assert plan(conditions=(ELMO,), overrides=["train.finetune_bilm=true"])


def test_two_arms_of_one_run_are_refused():
    with pytest.raises(InputError, match=r"elmo, seed 0; .*the same, seed 0.*--set"):
        plan(conditions=(ELMO, Condition(name="the same", overrides=ELMO.overrides)))


def test_dropout_of_the_network_is_written_out_and_can_be_set():
    def dropouts(**more):
        runs = plan(tasks=(SRL, NLI), shares=(1.0,), **more)
        return {run.task: run.metadata["config"]["dropout"] for run in runs}

    assert dropouts() == {"srl": find_task("srl").default_dropout, "nli": 0.2}
    assert dropouts(overrides=["dropout=0.3"]) == {"srl": 0.3, "nli": 0.3}
