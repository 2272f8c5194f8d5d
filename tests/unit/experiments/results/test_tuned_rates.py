"""Learning rates from the results of an earlier command."""

import json
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.experiments.results.tuned_rates import read_tuned_rates

STATIC, ELMO = ("nli", "pairs", "static"), ("nli", "pairs", "elmo")
PUBLISHED = Path(__file__).parents[4] / "docs/results/experiments"


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


def test_the_needed_rates_are_returned_from_the_file_or_its_folder(write):
    path = write([run(STATIC, 0.002), run(ELMO, 0.001), run(ELMO, 0.001)])
    assert read_tuned_rates(path, [ELMO]) == {ELMO: 0.001}
    assert read_tuned_rates(path.parent, [STATIC, ELMO]) == {STATIC: 0.002, ELMO: 0.001}


def test_published_results_have_rates():
    needed = ("pos", "ud-ko-kaist", "static"), ("ner", "ner-ko-kmou", "elmo")
    rates = read_tuned_rates(PUBLISHED / "korean.json", needed)
    assert rates == dict.fromkeys(needed, 0.006)


def test_what_was_not_tuned_or_has_not_run_is_refused(write):
    with pytest.raises(InputError, match=r"results\.json .*--tune"):
        read_tuned_rates(write([run(ELMO, 0.1)], tuned=False), [ELMO])
    with pytest.raises(InputError, match=r"results\.json .*nli, pairs, static.*--tasks"):
        read_tuned_rates(write([run(ELMO, 0.1)]), [ELMO, STATIC])
    with pytest.raises(FileNotFoundError, match=r"none\.json"):
        read_tuned_rates(write([]).parent / "none.json", [ELMO])


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ("none", "`runs`"),
        ([{"task": "nli"}], "no learning rate"),
        (["elmo"], "no learning rate"),
        ([run(ELMO, "high")], "'high'"),
        ([run(ELMO, -1.0)], r"-1\.0"),
        ([run(ELMO, float("inf"))], "inf"),
        ([run(ELMO, True)], "True"),
        ([run(("nli", ["pairs"], "elmo"), 0.1)], r"learning rate 0\.1"),
        ([run(ELMO, 0.1), run(ELMO, 0.2)], "nli, pairs, elmo .*several"),
    ],
)
def test_damage_is_told(write, runs, message):
    with pytest.raises(FormatError, match=rf"results\.json.*{message}"):
        read_tuned_rates(write(runs), [ELMO])
