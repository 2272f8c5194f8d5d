"""Tables of probes, from results made up."""

import re

import numpy as np
import pytest

from elmokit.experiments.comparison import Findings
from elmokit.experiments.definitions import EXAMPLES, RANDOM, find_experiment
from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.runs import RunResult
from elmokit.experiments.tables import example_table, probe_table, tie_table, training_gain_table
from elmokit.probes.wsd import FIGURES, PROBE

SETTINGS = find_experiment("table5").probe
NUM_TEST, NUM_DOCUMENTS = 4, 3


def score(name, right, weight=0.25):
    """A score whose six figures are ``right``, in percent."""
    numbers = [None if value is None else float(value) for value in right]
    values = dict(zip([one.name for one in FIGURES], numbers, strict=True))
    return {
        "name": name, **values, "num_instances": 400, "prior_weight": weight,
        "num_ties": {key: 7 for key, value in values.items() if value is not None},
    }  # fmt: skip


def counts(right):
    table = np.zeros((NUM_TEST + NUM_DOCUMENTS, 18))
    for number, value in enumerate(right):
        if value is not None:
            rows = slice(0, NUM_TEST) if number < 3 else slice(NUM_TEST, None)
            table[rows, 3 * number : 3 * number + 3] = [value, 100, 100]
    return table


def finished(condition, seed=0, **scores):
    run = PlannedRun(
        kind="wsd_probe", task="wsd_probe", dataset="wsd-en", condition=condition, seed=seed,
        metadata={"seed": seed, "family": condition},
    )  # fmt: skip
    named = {name.replace("_", " "): right for name, right in scores.items()}
    result = RunResult(
        metric="F1", value=0, num_examples=1, seconds=0,
        details={"scores": [
            score(name, right, None if name == "first sense" else 0.25)
            for name, right in named.items()
        ]},
        counts=np.stack([counts(right) for right in named.values()]),
    )  # fmt: skip
    return run, result


FIRST = (55, None, None, 70, None, None)


@pytest.fixture
def findings():
    return Findings(
        [
            finished("biLM", first_sense=FIRST, layer_1=(50, 51, 56, 72, 73, 74)),
            finished(RANDOM, 0, first_sense=FIRST, random_1=(40, 41, 50, 60, 61, 62)),
            finished(RANDOM, 1, first_sense=FIRST, random_1=(42, 43, 52, 62, 63, 64)),
        ],
        None,
    )


def test_a_baseline_has_no_number_where_it_has_no_method(findings):
    table = probe_table(findings, SETTINGS)
    assert table.header[:4] == ("representation", "centroid", "1-NN", "1-NN, prior")
    first, layer, random = table.rows
    assert first == ("first sense", "55.00", "–", "–", "70.00", "–", "–", "–", "1")
    assert layer[:4] == ("layer 1", "50.00", "51.00", "56.00")
    assert (random[1], random[-1]) == ("41.00 ± 1.41", "2")
    assert 0.05 < float(layer[-2]) <= 1  # four sentences, all alike


def test_what_training_added_is_shown_by_figure(findings):
    table = training_gain_table(findings, probe=PROBE)
    assert table.header == ("layer", *PROBE.columns.values())
    (row,) = table.rows
    assert [cell.split()[0] for cell in row[1:]] == ["+9.00"] * 2 + ["+5.00"] + ["+11.00"] * 3
    low, high = re.fullmatch(r"\+9\.00 \[(.*), (.*)\]", row[1]).groups()
    assert float(low) < 8 < 10 < float(high)  # the untrained ones differ by 2
    nothing = Findings(findings.runs[:1], None)
    assert training_gain_table(nothing, probe=PROBE).rows == ()


def test_ties_and_weights_of_the_prior_are_shown(findings):
    first, layer, random = tie_table(findings, probe=PROBE).rows
    assert first == ("first sense", "7", "–", "–", "7", "–", "–", "–")
    assert layer == ("layer 1", *["7"] * 6, "0.25")
    assert random[-1] == "0.25, 0.25"


def test_examples_come_with_the_glosses_of_their_senses():
    run = PlannedRun(
        kind="neighbor_probe", task="neighbor_probe", dataset="wsd-en", condition=EXAMPLES,
        metadata={},
    )  # fmt: skip
    details = {
        "examples": [
            {"source": "biLM", "query": "a [play] (p%1)", "nearest": ["x (p%1)", "y (p%2)"]}
        ],
        "glosses": {"p%1": "a drama", "p%2": "an act"},
    }
    result = RunResult(metric="", value=0, num_examples=1, seconds=0, details=details)
    table = example_table(Findings([(run, result)], None))
    assert table.rows == (("biLM", "a [play] (p%1)", "x (p%1); y (p%2)"),)
    assert table.notes == ("p%1: a drama", "p%2: an act")
