"""Suites with regions: formulas over sums of surprisals."""

import gzip
import json

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.evaluation.suites import ALL, Suite
from elmokit.evaluation.surprisal import surprisal

from ...builders.command_line import elmokit
from ...builders.training_models import toy_model


def condition(name, *regions):
    parts = [{"region_number": k, "content": text} for k, text in enumerate(regions, start=1)]
    return {"condition_name": name, "regions": parts}


SUITE = {
    "meta": {"name": "toy"},
    "predictions": [
        {"type": "formula", "formula": "(2;%b%) > (2;%a%)"},
        {"type": "formula", "formula": "[(*;%a%) - (1;%a%)] = ((2;%a%) + (3;%a%)) | (1;%a%) < 0"},
        {"type": "formula", "formula": "((2;%b%) > (2;%a%)) & ((2;%b%) < (2;%a%))"},
    ],
    "items": [
        {"item_number": 1, "conditions": [
            condition("a", "I sat", "by", "the bank ."),
            condition("b", "I sat", "sat", "the bank ."),
        ]},
        {"item_number": 2, "conditions": [
            condition("a", "the bank", "sat", ""), condition("b", "the bank", "the", "")
        ]},
    ],
}  # fmt: skip


@pytest.fixture
def write_suite(tmp_path):
    def write(change=lambda suite: None):
        suite = json.loads(json.dumps(SUITE))
        change(suite)
        (tmp_path / "suite.json").write_text(json.dumps(suite), encoding="utf-8")
        return tmp_path / "suite.json"

    return write


def test_formulas_compare_sums_of_surprisals(write_suite):
    model = toy_model()
    rows = {row.prediction: row for row in Suite(write_suite()).score(model, precision="fp32")}

    def bits(text):
        word = list(surprisal(model, [text.split()], precision="fp32"))[2]
        return np.array([word.forward, word.backward])

    expected = [
        bits("I sat sat the bank .") > bits("I sat by the bank ."),
        bits("the bank the") > bits("the bank sat"),
    ]
    first = rows["(2;%b%) > (2;%a%)"]
    assert first.items == 2
    found = [first.readings[way].accuracy for way in ("forward", "backward")]
    assert found == np.mean(expected, axis=0).tolist()
    contradiction = rows[SUITE["predictions"][2]["formula"]]
    assert [part.accuracy for part in contradiction.readings.values()] == [0, 0, 0]
    assert [part.accuracy for part in rows[ALL].readings.values()] == [0, 0, 0]


@pytest.mark.e2e
def test_the_command_scores_suites_by_themselves(write_suite, tmp_path):
    toy_model().save(tmp_path / "model")
    arguments = ["pairs", tmp_path / "model", write_suite()]
    printed = json.loads(elmokit(*arguments, "--json").stdout)
    (rows,) = printed["suites"].values()
    assert [row["items"] for row in rows] == [2] * 4
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(write_suite().read_bytes()))
    assert (
        json.loads(elmokit(*arguments[:2], packed, "--json").stdout)["suites"][str(packed)] == rows
    )
    elmokit(*arguments, "--by", "kind", expect=2)


def predicting(formula):
    return lambda suite: suite["predictions"][0].update(formula=formula)


@pytest.mark.parametrize("change", [
    predicting("(9;%a%) > 1"), predicting("(1;%c%) > 1"), predicting("(1;%a%) >"),
    predicting("__import__('os')"), predicting("(1;%a%) ** 99"),
    predicting("(1;%a%) > 'a' * 9"), lambda suite: suite.pop("items"),
    lambda suite: suite["items"][0]["conditions"][0].update(condition_name="b"),
    lambda suite: suite["items"][0]["conditions"][0].pop("regions"),
    lambda suite: suite["items"][1]["conditions"][0]["regions"][2].update(region_number=2),
])  # fmt: skip
def test_suites_that_cannot_hold_or_do_more_than_compare_are_refused(write_suite, change):
    with pytest.raises(FormatError, match=r"suite\.json"):
        Suite(write_suite(change))
