"""Whole experiments on data sets of a few sentences."""

import json

import pytest
import torch

from elmokit.errors import InputError
from elmokit.experiments.registry import find_experiment
from elmokit.experiments.run_experiment import ExperimentOptions, Listeners, run_experiment
from elmokit.experiments.runs import task_runs
from elmokit.experiments.settings import NLI
from elmokit.tasks.runs.run_dir import read_metadata

from ...builders.experiment_data import write_data, write_vectors
from ...builders.task_models import toy_model

FAST = ("train.epochs=1", "hidden_dims=[6]", "train.patience=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("experiments")
    write_data(folder / "data")
    toy_model().save(folder / "model")
    write_vectors(folder / "vectors.txt")
    return folder


@pytest.fixture
def options(folder, tmp_path):
    def options(name, **changes):
        given = {
            "data_dir": folder / "data", "output": tmp_path / name, "seeds": 1,
            "model": str(folder / "model"), "vectors": folder / "vectors.txt",
            "cache_dir": folder / "layers", "command": f"elmokit experiment {name}",
        }  # fmt: skip
        return ExperimentOptions(**{**given, **changes})

    return options


def test_a_second_process_on_one_output_is_refused(options, tmp_path):
    def second(_):
        with pytest.raises(FileExistsError, match=r"process .*/table1"):
            run_experiment("table1", options("table1", tasks=("ner",), overrides=FAST))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(
            "table1",
            options("table1", tasks=("ner",), overrides=FAST),
            Listeners(on_plan=second),
        )


def test_a_table_of_two_arms_and_two_shares(options, tmp_path):
    told = []
    report = run_experiment(
        "table1",
        options("table1", tasks=("ner",), overrides=FAST, seeds=2),
        Listeners(on_plan=told.append),
    )
    assert not report.results["missing"]
    assert "8 runs planned, 0 of them already done" in told[0]
    results = json.loads((tmp_path / "table1/results.json").read_text("utf-8"))
    assert {(run["condition"], run["share"], run["seed"]) for run in results["runs"]} == {
        (condition, share, seed)
        for condition in ("static", "elmo")
        for share in (1.0, 0.1)
        for seed in (0, 1)
    }
    assert {run["examples"] for run in results["runs"]} == {24, 2}
    (full, tenth) = results["comparisons"]
    by_condition = {
        condition: [
            r["value"] for r in results["runs"] if (r["condition"], r["share"]) == (condition, 1.0)
        ]
        for condition in ("static", "elmo")
    }
    assert full["gain"] == pytest.approx(
        (sum(by_condition["elmo"]) - sum(by_condition["static"])) / 2
    )
    assert (full["seeds"], tenth["share"]) == ([0, 1], 0.1)
    assert 0 < full["p_value"] <= 1
    page = (tmp_path / "table1/table.md").read_text("utf-8")
    for said in ("`elmokit experiment table1`", "hardware", "biLM", "elmokit 0", "| ner |"):
        assert said in page
    assert not (tmp_path / "table1/models").exists()
    assert list((tmp_path / "runs/training").iterdir()) == []


def test_an_interrupted_experiment_goes_on_and_shows_what_it_has(options, tmp_path, monkeypatch):
    given = options("table1", tasks=("nli",), overrides=FAST)
    train, trained = task_runs.train_task, []

    def dies_at_the_third(config, *arguments, **more):
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(config)
        return train(config, *arguments, **more)

    monkeypatch.setattr(task_runs, "train_task", dies_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        run_experiment("table1", given)
    page = (tmp_path / "table1/table.md").read_text("utf-8")
    assert "Not run: 2 of 4" in page
    assert "nli (nli-snli-sample), elmo, 0.1 of the labels, seed 0: not yet run" in page
    monkeypatch.setattr(task_runs, "train_task", train)
    told = []
    report = run_experiment("table1", given, Listeners(on_plan=told.append))
    assert "4 runs planned, 2 of them already done" in told[0]
    assert not report.results["missing"]
    # the same as without the interruption
    whole = run_experiment("table1", options("w/table1", tasks=("nli",), overrides=FAST))
    assert [r["value"] for r in report.results["runs"]] == [
        r["value"] for r in whole.results["runs"]
    ]


def test_controls_share_runs_with_table_1_and_are_tested_against_elmo(options):
    given = {"tasks": ("nli", "ner"), "overrides": FAST}
    run_experiment("table1", options("table1", **given))
    told = []
    report = run_experiment(
        "controls", options("controls", **given), Listeners(on_plan=told.append)
    )
    assert "13 runs planned, 4 of them already done" in told[0]
    assert not report.results["missing"]
    tested = [(one["task"], one["condition"]) for one in report.results["comparisons"]]
    assert tested.count(("nli", "static, at the output too")) == 1
    assert ("ner", "static, at the output too") not in tested
    assert len(tested) == 11
    assert {one["reference"] for one in report.results["comparisons"]} == {"elmo"}


def test_figure_2_takes_the_runs_of_table_1_and_draws_their_weights(options, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    run_experiment("table1", options("table1", tasks=("nli",), overrides=FAST, keep_models=True))
    models = list((tmp_path / "table1/models").iterdir())
    assert len(models) == 4
    assert all(read_metadata(model)["config"]["task"] == "nli" for model in models)
    monkeypatch.setattr(task_runs, "train_task", lambda *_, **__: pytest.fail("trained again"))
    report = run_experiment("figure2", options("figure2", tasks=("nli",), overrides=FAST))
    (run,) = report.results["runs"]
    assert [one["position"] for one in run["layer_weights"]] == ["input", "output"]
    assert all(sum(one["weights"]) == pytest.approx(1) for one in run["layer_weights"])
    assert (tmp_path / "figure2/plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_position_of_use_is_told_from_the_other(options):
    report = run_experiment("table3", options("table3", tasks=("nli",), overrides=FAST))
    positions = {
        run["condition"]: [one["position"] for one in run["layer_weights"]]
        for run in report.results["runs"]
    }
    assert positions == {
        "input": ["input"], "input and output": ["input", "output"], "output": ["output"],
    }  # fmt: skip


class Enough(Exception):
    """Ends an experiment."""


def test_another_bilm_and_other_settings_do_not_mix(options, tmp_path):
    def ends_after_both_arms(advance):
        if advance.result is not None and advance.run.condition == "elmo":
            raise Enough

    def ends_with_the_plan(text):
        raise Enough(text)

    given = {"tasks": ("nli",), "overrides": FAST}
    listeners = Listeners(on_advance=ends_after_both_arms)
    with pytest.raises(Enough):
        run_experiment("table1", options("table1", **given), listeners)
    toy_model(seed=9).save(tmp_path / "other")
    changes = {
        "4 .*2 ": {},
        "4 .*1 ": {"model": str(tmp_path / "other")},  # static reads no biLM
        "4 .*0 ": {"overrides": (*FAST, "train.learning_rate=0.1")},
    }  # fmt: skip
    for said, change in changes.items():
        with pytest.raises(Enough, match=said):
            run_experiment(
                "table1",
                options("table1", **(given | change)),
                Listeners(on_plan=ends_with_the_plan),
            )


def test_the_learning_rate_is_chosen_by_the_dev_score(options, tmp_path):
    told = []
    report = run_experiment(
        "table1",
        options("table1", tasks=("nli",), overrides=FAST, tune=True),
        Listeners(on_plan=told.append),
    )
    # 2 conditions × 3 rates; one of each three is the run of the table
    assert "8 runs planned" in told[0]
    scores = {}
    for path in (tmp_path / "runs").glob("*/result.json"):
        stored = json.loads(path.read_text("utf-8"))
        if stored["run"]["share"] == 1:
            rate = stored["run"]["metadata"]["config"]["train"]["learning_rate"]
            scores[stored["run"]["condition"], rate] = stored["result"]["value"]
    assert len(scores) == 6
    for run in report.results["runs"]:
        rate = run["config"]["train"]["learning_rate"]
        best = max(
            value for (condition, _), value in scores.items() if condition == run["condition"]
        )
        assert scores[run["condition"], rate] == best


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("table4", {"layer 0", "layer 1", "layer 2", "static", "random 0", "random 2"}),
        ("table5", {"first sense", "most frequent sense", "layer 0", "layer 2", "static"}),
        ("table6", {"majority tag", "layer 0", "layer 1", "layer 2", "static", "random 1"}),
    ],
)
def test_probes(options, name, rows):
    report = run_experiment(name, options(name, seeds=2))
    assert not report.results["missing"]
    table = report.results["tables"][0]
    found = {row[0]: row for row in table["rows"]}
    assert rows <= set(found)
    assert found["layer 1"][-1] == "1"
    assert found["random 1"][-1] == "2"
    if name != "table6":
        gains = report.results["tables"][1]["rows"]
        assert [row[0] for row in gains] == ["layer 0", "layer 1", "layer 2"]
    if name == "table4":
        lists = report.results["tables"][2]["rows"]
        assert [row[0] for row in lists] == ["static", "biLM, top layer", "biLM, top layer"]
        assert len(lists[0][2].split("; ")) == 10


@pytest.mark.parametrize("name", ["table4", "table6"])
def test_the_device_reaches_everything_that_computes_in_a_probe(options, monkeypatch, name):
    """Layers of the biLM, trained or not; neighbors in context (table 4); classifiers (table 6)."""
    from elmokit.embed import embedder
    from elmokit.experiments import run_experiment as run_experiment_module
    from elmokit.probes import pos

    asked = []

    def pick(module):
        return lambda device: asked.append((module.__name__, device)) or torch.device("cpu")

    for module in (embedder, pos, run_experiment_module):
        monkeypatch.setattr(module, "pick_device", pick(module))
    given = options(name, device="cuda:7")
    asked.clear()
    report = run_experiment(name, given)
    assert not report.results["missing"]
    assert {device for _, device in asked} == {"cuda:7"}
    expected = {"table4": {embedder.__name__}, "table6": {embedder.__name__, pos.__name__}}
    assert {module for module, _ in asked} == expected[name]


def test_missing_data_are_told_before_anything_is_computed(options, tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        run_experiment("korean", options("korean", data_dir=tmp_path))
    assert str(tmp_path / "ud-ko-kaist") in str(error.value)
    assert "KLUE-NLI: JSON lines of premise, hypothesis, label" in str(error.value)
    assert not (tmp_path / "runs").exists()
    with pytest.raises(FileNotFoundError, match=r"/wsd-en: semcor\.data\.xml.*\n.*--data"):
        run_experiment("table5", options("table5", data_dir=tmp_path))


def test_a_folder_without_a_split_is_told(options, tmp_path):
    (tmp_path / "nli-snli-sample").mkdir()
    with pytest.raises(FileNotFoundError, match=r"/nli-snli-sample .*'train'.*\n.*--data.*--tasks"):
        run_experiment("table1", options("table1", data_dir=tmp_path, tasks=("nli",)))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("table1", {"vectors": None}, "table1 .*--vectors.*elmokit vectors"),
        ("korean", {"model": None}, "korean .*'ko'.*--model.*--vectors"),
        ("table6", {"tune": True}, "table6 .*--tune.*--set"),
    ],
)
def test_what_does_not_go_together_is_refused(options, monkeypatch, name, changes, message):
    from elmokit.experiments import run_experiment as module

    monkeypatch.setattr(module, "packaged_models", lambda: ["en"])
    with pytest.raises(InputError, match=message):
        run_experiment(name, options(name, **changes))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("seeds", 0, r"`seeds` .* 0\."),
        ("minutes", 0.0, r"`minutes` .* 0\.0\."),
        ("device", "gpu", "'gpu'"),
    ],
)
def test_impossible_options_are_refused(options, name, value, message):
    with pytest.raises(InputError, match=message):
        options("table1", **{name: value})


def test_without_a_vector_of_the_word_the_rest_of_table_4_stands(options, folder, tmp_path):
    lines = (folder / "vectors.txt").read_text("utf-8").splitlines(keepends=True)
    vectors = tmp_path / "few.txt"
    vectors.write_text("".join(one for one in lines if not one.startswith("play ")), "utf-8")
    report = run_experiment("table4", options("table4", vectors=vectors))
    assert not report.results["missing"]
    lists = report.results["tables"][2]["rows"]
    assert [row[2] == "no vector" for row in lists] == [True, False, False]


def test_a_probe_folder_that_lacks_a_file_is_told_while_planning(options, tmp_path):
    (tmp_path / "wsd-en").mkdir()
    with pytest.raises(FileNotFoundError, match=r"/wsd-en .*semcor\.data\.xml.*Raganato"):
        run_experiment("table5", options("table5", data_dir=tmp_path))


def test_with_a_rate_that_diverges_the_others_are_chosen_from(options, tmp_path, monkeypatch):
    train, rates, usual = task_runs.train_task, [], NLI.learning_rate

    def diverges_at_a_high_rate(config, *arguments, **more):
        rates.append(config.train.learning_rate)
        if config.train.learning_rate > 0.75 * usual:
            raise FloatingPointError("The loss is not finite.")
        return train(config, *arguments, **more)

    monkeypatch.setattr(task_runs, "train_task", diverges_at_a_high_rate)
    given = options("figure2", tasks=("nli",), overrides=FAST, tune=True)
    pytest.importorskip("matplotlib")
    report = run_experiment("figure2", given)
    assert not report.results["missing"]
    assert sorted(rates) == [usual / 2, usual, 2 * usual]
    assert report.results["runs"][0]["config"]["train"]["learning_rate"] == usual / 2
    assert list((tmp_path / "runs/training").iterdir()) == []
    run_experiment("figure2", given)
    assert len(rates) == 3  # nothing is tried again


def test_the_model_of_the_package_is_meant_where_none_is_named(tmp_path, monkeypatch):
    from elmokit.experiments import run_experiment as module
    from elmokit.weights.locate import PACKAGED_MODELS, find_model

    monkeypatch.chdir(tmp_path)
    for name, language in (("korean", "ko"), ("table1", "en")):
        (tmp_path / language).mkdir()
        (tmp_path / language / "config.json").touch()
        model = module._model_name(find_experiment(name), None)
        assert find_model(model) == PACKAGED_MODELS / language
