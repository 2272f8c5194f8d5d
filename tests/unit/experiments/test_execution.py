"""Runs of probes on data of a few sentences."""

import re
from dataclasses import replace

import pytest

from elmokit.experiments import definitions
from elmokit.experiments.definitions import EXAMPLES, STATIC_VECTORS, find_experiment
from elmokit.experiments.execution import ProbeRuns, Resources
from elmokit.experiments.inputs import find_bilm, find_probe_data
from elmokit.experiments.plan import plan_probe
from elmokit.experiments.runs import RunStore

from ...builders.experiment_data import write_data, write_vectors
from ...builders.task_models import toy_model

SENSE = re.compile(r"\((\w+)\)$")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probes")
    write_data(folder / "data")
    toy_model().save(folder / "model")
    write_vectors(folder / "vectors.txt")
    return folder


@pytest.fixture
def execute(folder, monkeypatch):
    def execute(name, family, **changes):
        settings = find_experiment(name).probe
        probe = replace(settings.probe, **changes)
        monkeypatch.setattr(definitions, "find_probe", lambda name: probe)
        bilm = find_bilm(find_experiment(name), str(folder / "model")).metadata
        plan = plan_probe(settings, seeds=1, data={}, bilm=bilm, vectors_hash="v")
        (run,) = (run for run in plan if run.condition == family)
        resources = Resources(
            store=RunStore(folder / "runs"), samples_dir=folder / "work", model=folder / "model",
            vectors=folder / "vectors.txt",
        )  # fmt: skip
        runs = ProbeRuns(resources=resources, settings=settings, data_dir=folder / "data")
        return runs.execute(run)

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
    result = execute("table5", "biLM")
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

    assert execute("table6", STATIC_VECTORS, measure=with_good_baseline).value == 9


def test_table_4_needs_the_inventory_and_says_so_while_planning(folder, tmp_path):
    for path in (folder / "data/wsd-en").iterdir():
        if not path.name.endswith("senses.tsv"):
            (tmp_path / "wsd-en").mkdir(exist_ok=True)
            (tmp_path / "wsd-en" / path.name).write_bytes(path.read_bytes())
    with pytest.raises(FileNotFoundError, match=r"senses\.tsv"):
        find_probe_data(find_experiment("table4").probe, tmp_path)
