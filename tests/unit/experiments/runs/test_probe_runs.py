"""Runs of probes on data of a few sentences."""

import re
from dataclasses import replace

import pytest

from elmokit.experiments.inputs import find_bilm
from elmokit.experiments.probe_plan import BILM, EXAMPLES, STATIC, plan_probe
from elmokit.experiments.registry import find_experiment
from elmokit.experiments.runs.probe_runs import ProbeRuns

from ....builders.experiment_data import write_data, write_vectors
from ....builders.task_models import toy_model

SENSE = re.compile(r"\((\w+)\)$")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probes")
    write_data(folder / "data")
    toy_model().save(folder / "model")
    write_vectors(folder / "vectors.txt")
    return folder


@pytest.fixture
def execute(folder):
    def execute(name, family, **changes):
        settings = find_experiment(name).probe
        settings = replace(settings, probe=replace(settings.probe, **changes))
        plan = plan_probe(
            settings, folder / "data", seeds=1, model=find_bilm(str(folder / "model")),
            vectors_hash="v",
        )  # fmt: skip
        (run,) = (run for run in plan if run.condition == family)
        runs = ProbeRuns(
            settings=settings, data_dir=folder / "data", work_dir=folder / "work",
            model=folder / "model", vectors=folder / "vectors.txt",
        )  # fmt: skip
        return runs(run, lambda: None)

    return execute


def test_the_examples_are_in_two_senses_and_no_neighbor_is_the_query(execute):
    details = execute("table4", EXAMPLES).details
    static, first, second = details["examples"]
    assert static["query"] == "play"
    senses = [SENSE.search(one["query"])[1] for one in (first, second)]
    assert sorted(senses) == ["drama", "game"]
    for one in (first, second):
        assert len(one["nearest"]) == 3
        assert all(SENSE.search(neighbor) for neighbor in one["nearest"])
        texts = [SENSE.sub("", neighbor) for neighbor in one["nearest"]]
        assert SENSE.sub("", one["query"]) not in texts
    assert details["glosses"] == {"drama": "g", "game": "g"}


def test_every_number_of_a_score_is_kept(execute):
    result = execute("table5", BILM)
    names = [score["name"] for score in result.details["scores"]]
    assert names == ["first sense", "most frequent sense", "layer 0", "layer 1", "layer 2"]
    layer = result.details["scores"][-1]
    assert {"prior_weight", "num_ties", "semcor_prior_f1", "num_unanswered"} <= set(layer)
    assert result.counts.shape == (5, 4 + 3, 18)  # sentences of the test set, and documents
    own = result.details["scores"][2:]  # without the baselines
    assert result.value == max(score["f1"] for score in own)


def test_no_baseline_is_the_value_of_a_run(execute):
    measure = find_experiment("table6").probe.probe.measure

    def with_good_baseline(*arguments):
        baseline, *own = measure(*arguments)
        return replace(baseline, accuracy=100.0), *(replace(one, accuracy=9.0) for one in own)

    assert execute("table6", STATIC, measure=with_good_baseline).value == 9


def test_table_4_needs_the_inventory_and_says_so_while_planning(folder, tmp_path):
    for path in (folder / "data/wsd-en").iterdir():
        if not path.name.endswith("senses.tsv"):
            (tmp_path / "wsd-en").mkdir(exist_ok=True)
            (tmp_path / "wsd-en" / path.name).write_bytes(path.read_bytes())
    bilm = find_bilm(str(folder / "model"))
    with pytest.raises(FileNotFoundError, match=r"senses\.tsv"):
        plan_probe(find_experiment("table4").probe, tmp_path, seeds=1, model=bilm, vectors_hash="v")
