from elmokit.experiments.runs.store import RunStore
from elmokit.experiments.runs.tuning import (
    ALL_DIVERGED,
    NOT_TUNED,
    RATE_FACTORS,
    best_rates,
    tuning_runs,
)

from ....builders.experiment_runs import planned, result


def plan(rates):
    return [
        planned(
            condition,
            config={"train": {"learning_rate": rates.get(("nli", "pairs", condition), 0.1)}},
        )
        for condition in ("static", "elmo")
    ]


def test_every_arm_tries_every_rate():
    runs = tuning_runs(plan)
    expected = {
        (condition, 0.1 * factor) for condition in ("static", "elmo") for factor in RATE_FACTORS
    }
    assert {(run.condition, run.learning_rate) for run in runs} == expected
    assert len({run.id for run in runs}) == 6


def test_the_best_rate_is_chosen_of_those_that_did_not_diverge(tmp_path):
    store, runs = RunStore(tmp_path), tuning_runs(plan)
    static = [run for run in runs if run.condition == "static"]
    elmo = [run for run in runs if run.condition == "elmo"]
    store.write(static[0], result(99.0, epochs=[40.0, 39.0]))  # scores on dev choose nothing
    store.write(static[1], result(45.0, epochs=[41.0, 45.0]))
    unfinished = best_rates(runs, store)
    assert unfinished.reason_against(static[0], "static") == NOT_TUNED  # one is not yet tried
    store.write_divergence(static[2], "The loss is not finite.")
    for run in elmo:
        store.write_divergence(run, "The loss is not finite.")
    chosen = best_rates(runs, store)
    assert chosen.rates == {("nli", "pairs", "static"): static[1].learning_rate}
    assert chosen.reason_against(static[0], "static") is None
    assert chosen.reason_against(elmo[0], "elmo") == ALL_DIVERGED
    assert chosen.reason_against(elmo[0], "static") is None  # gets the rate of static
