"""Learning rates, tuned here or read from the results of an earlier command."""

import json
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.experiments.definitions import TASKS, find_experiment
from elmokit.experiments.runs import RunStore
from elmokit.experiments.tuning import (
    RATE_FACTORS,
    best_rates,
    read_tuned_rates,
    tuning_runs,
)

from ...builders.experiment_runs import planned, result

DATA = TASKS["nli"].dataset
STATIC, ELMO = ("nli", DATA, "static"), ("nli", DATA, "elmo")
TABLE1, FIGURE2 = find_experiment("table1"), find_experiment("figure2")
PUBLISHED = Path(__file__).parents[3] / "docs/results/experiments"


def run(key, rate):
    names = dict(zip(("task", "dataset", "condition"), key, strict=True))
    return names | {"config": {"train": {"learning_rate": rate}}}


@pytest.fixture
def write(tmp_path):
    def write(runs, **changes):
        results = {"experiment": "table1", "tuned": True, "runs": runs, **changes}
        (tmp_path / "results.json").write_text(json.dumps(results), encoding="utf-8")
        return tmp_path / "results.json"

    return write


def read(path, experiment=FIGURE2):
    return read_tuned_rates(path, experiment, [TASKS["nli"]])


def test_the_needed_rates_are_returned_from_the_file_or_its_folder(write):
    path = write([run(STATIC, 0.002), run(ELMO, 0.001), run(ELMO, 0.001)])
    assert read(path) == {ELMO: 0.001}
    assert read(path.parent, TABLE1) == {STATIC: 0.002, ELMO: 0.001}


def test_published_results_have_rates():
    korean = find_experiment("korean")
    rates = read_tuned_rates(PUBLISHED / "korean.json", korean, korean.tasks[:2])
    assert rates == {
        (task.task, task.dataset, name): 0.006
        for task in korean.tasks[:2]
        for name in ("static", "elmo")
    }


def test_what_was_not_tuned_or_has_not_run_is_refused(write):
    with pytest.raises(InputError, match=r"results\.json .*--tune"):
        read(write([run(ELMO, 0.1)], tuned=False))
    with pytest.raises(InputError, match=r"results\.json .*nli, nli-snli.*, static.*--tasks"):
        read(write([run(ELMO, 0.1)]), TABLE1)
    with pytest.raises(FormatError, match=r"none\.json"):
        read(write([]).parent / "none.json")


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([{"task": "nli"}], "usable learning rate"),
        (["elmo"], "usable learning rate"),
        ([run(ELMO, "high")], "'high'"),
        ([run(ELMO, -1.0)], "-1"),
        ([run(ELMO, float("inf"))], "inf"),
        ([run(("nli", [DATA], "elmo"), 0.1)], "usable learning rate"),
        ([run(ELMO, 0.1), run(ELMO, 0.2)], "elmo, or several"),
    ],
)
def test_damage_is_told(write, runs, message):
    with pytest.raises(FormatError, match=rf"results\.json.*{message}"):
        read(write(runs))


def plan(experiment, rates, seeds):
    assert seeds == 1
    return [
        planned(
            condition,
            dataset=DATA,
            config={"train": {"learning_rate": rates.get(("nli", DATA, condition), 0.1)}},
        )
        for condition in (condition.name for condition in experiment.conditions)
    ]


def test_every_arm_tries_every_rate():
    runs = tuning_runs(find_experiment("table1"), plan)
    expected = {
        (condition, 0.1 * factor) for condition in ("static", "elmo") for factor in RATE_FACTORS
    }
    assert {(run.condition, run.learning_rate) for run in runs} == expected
    assert len({run.id for run in runs}) == 6


def test_the_best_rate_is_chosen_of_those_that_did_not_diverge(tmp_path):
    store, runs = RunStore(tmp_path), tuning_runs(find_experiment("table1"), plan)
    static = [run for run in runs if run.condition == "static"]
    store.write(static[0], result(99.0, epochs=[40.0, 39.0]))  # scores on dev choose nothing
    store.write(static[1], result(45.0, epochs=[41.0, 45.0]))
    assert best_rates(runs, store) == ({}, set())  # one is not yet tried
    for run in runs:
        if not store.is_settled(run):
            store.write_divergence(run, "The loss is not finite.")
    assert best_rates(runs, store) == ({STATIC: static[1].learning_rate}, {ELMO})
