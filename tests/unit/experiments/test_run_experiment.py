"""Whole experiments on data sets of a few sentences."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.experiments import execution, inputs
from elmokit.experiments import run_experiment as module
from elmokit.experiments.definitions import TASKS, find_experiment
from elmokit.experiments.run_experiment import ExperimentOptions, Listeners, run_experiment
from elmokit.experiments.runs import RunStore
from elmokit.jobs.job import CHECKPOINTS, checkpoints_of
from elmokit.tasks.runs import train_task
from elmokit.tasks.runs.train_task import SavedTraining

from ...builders.experiment_data import write_data, write_test_data, write_vectors
from ...builders.task_models import toy_model

FAST = ("train.epochs=1", "hidden_dims=[6]", "train.patience=1")
NER, NLI, QA, SENTIMENT, SRL = (TASKS[name] for name in ("ner", "nli", "qa", "sentiment", "srl"))


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
            run_experiment("table1", options("table1", tasks=("ner",), resume=True))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(
            "table1",
            options("table1", tasks=("ner",), overrides=FAST),
            Listeners(on_plan=second),
        )


def test_a_table_of_two_arms_and_two_shares(options, tmp_path, monkeypatch):
    told, made = [], execution.provenance
    monkeypatch.setattr(
        execution, "provenance", lambda device: made(device) | {"hardware": f"a {device} of ours"}
    )
    report = run_experiment(
        "table1",
        options("table1", tasks=("ner",), overrides=FAST, seeds=2, device="cpu"),
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
    assert {run["examples"] for run in results["runs"]} == {22, 2}  # two are held out
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
    assert 0 < full["p_value"] <= full["adjusted_p"] <= 1
    (change,) = results["gain_changes"]
    assert change["change"] == pytest.approx(tenth["gain"] - full["gain"])
    page = (tmp_path / "table1/table.md").read_text("utf-8")
    made = ("`elmokit experiment table1`", "hardware: a cpu of ours\n", "biLM", "elmokit 0")
    for said in (*made, "| ner |"):
        assert said in page
    assert "\nThe best epoch was the last in 8 of 8 runs (ner 8)." in page  # of one


def test_dev_is_scored_once_and_a_part_of_the_training_set_chooses_the_epoch(
    options, tmp_path, monkeypatch
):
    train, read = execution.train_task, []

    def noting(config, train_path, dev_path, run_dir, *, test_path, **more):
        texts = [path.read_text("utf-8") for path in (train_path, dev_path, test_path)]
        read.append(texts)
        trained = train(config, train_path, dev_path, run_dir, test_path=test_path, **more)
        rows = (run_dir / "metrics.jsonl").read_text("utf-8").splitlines()
        scores = [json.loads(row)["dev"] for row in rows]
        read[-1].append((scores, trained.best.epoch, trained.test.value))
        return trained

    monkeypatch.setattr(execution, "train_task", noting)
    given = options("table1", tasks=("ner",), seeds=2, overrides=("train.epochs=4", *FAST[1:]))
    report = run_experiment("table1", given)
    assert "the learning rate was not tuned" in report.results["made"]["scored"]
    assert {text for _, _, text, _ in read} == {
        (given.data_dir / "ner-en-uner-ewt/dev.conll").read_text("utf-8")
    }
    ((train_text, held_out),) = {(one, two) for one, two, _, _ in read}  # in all runs
    whole = (given.data_dir / "ner-en-uner-ewt/train.conll").read_text("utf-8")
    sentences = [sorted(text.strip().split("\n\n")) for text in (train_text, held_out, whole)]
    assert sorted(sentences[0] + sentences[1]) == sentences[2]
    assert len(sentences[1]) == 2
    by_scores = {(tuple(scores), value): best for _, _, _, (scores, best, value) in read}
    for run in report.results["runs"]:
        scores = tuple(epoch["held_out"] for epoch in run["epochs"])
        best = by_scores[scores, run["value"]]
        assert run["best_epoch"] == best
        assert scores[best - 1] == max(scores)


def test_every_finished_run_is_scored_on_the_test_files_also_later(options, tmp_path, monkeypatch):
    test = write_test_data(tmp_path / "test")
    given = {"tasks": ("qa", "ner"), "overrides": FAST}
    assert "test" not in run_experiment("table1", options("table1", **given)).results
    train = execution.train_task
    monkeypatch.setattr(execution, "train_task", lambda *_, **__: pytest.fail("trained again"))
    report = run_experiment("table1", options("table1", test_dir=test, resume=True, **given))
    assert {run["id"] for run in report.results["test"]["runs"]} == {
        run["id"] for run in report.results["runs"]
    }
    assert len(report.results["test"]["comparisons"]) == 4
    assert "## Scores on the test files" in report.markdown
    assert "## Against static, on the test files" in report.markdown
    (path,) = (test / NER.dataset).iterdir()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    file = {"path": str(path), "sha256": digest}
    assert report.results["test"]["files"][NER.dataset] == file
    assert f"{NER.dataset}: {path}, SHA-256 {digest}" in report.markdown
    # scored at once, the same numbers
    monkeypatch.setattr(execution, "train_task", train)
    at_once = run_experiment("table1", options("other/table1", test_dir=test, **given))
    assert at_once.results["test"]["runs"] == report.results["test"]["runs"]
    # each file once
    monkeypatch.setattr(execution, "TaskRun", None)
    again = run_experiment("table1", options("table1", test_dir=test, resume=True, **given))
    assert again.results["test"]["runs"] == report.results["test"]["runs"]


def test_a_test_score_needs_no_vectors_at_their_old_place(options, folder, tmp_path):
    """The stored model looks up all words in the file of this command: it has the same content."""
    test = write_test_data(tmp_path / "test")
    moved = tmp_path / "moved.txt"
    moved.write_bytes((folder / "vectors.txt").read_bytes())
    given = {"tasks": ("nli",), "overrides": FAST, "seeds": 1}
    run_experiment("table1", options("table1", vectors=moved, **given))
    moved.unlink()
    later = run_experiment("table1", options("table1", test_dir=test, resume=True, **given))
    at_once = run_experiment("table1", options("other/table1", test_dir=test, **given))
    assert later.results["test"]["runs"] == at_once.results["test"]["runs"]
    for path in (tmp_path / "table1/runs").iterdir():
        assert (path / "vectors.txt").read_bytes() == b""


@pytest.mark.parametrize(
    ("task", "content", "message"),
    [
        ("ner", "Tom\tB-GENE\n", r"ner .*none of the labels.*LOC, PER.*GENE"),
        ("ner", '{"premise": "a"}\n', r"ner \(expected: Universal NER.*test\.conll, line 1"),
        ("qa", "Tom\tO\n", r"qa \(expected: SQuAD.*test\.json.*JSON"),
    ],
)
def test_a_test_file_of_another_task_is_told_before_anything(
    options, tmp_path, monkeypatch, task, content, message
):
    test = write_test_data(tmp_path / "test")
    (path,) = (test / {"ner": NER, "qa": QA}[task].dataset).iterdir()
    path.write_text(content, encoding="utf-8")
    monkeypatch.setattr(execution, "train_task", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(InputError, match=rf"--test: .*{message}") as caught:
        run_experiment("table1", options("table1", test_dir=test, overrides=FAST))
    assert str(caught.value).count(str(path)) == 1
    assert not (tmp_path / "table1").exists()


def test_labels_of_a_test_file_that_training_lacks_are_told_once(options, tmp_path, caplog):
    test = write_test_data(tmp_path / "test")
    (path,) = (test / NER.dataset).iterdir()
    path.write_text(f"{path.read_text('utf-8')}\nTP53\tB-GENE\n", encoding="utf-8")
    given = options("table1", test_dir=test, tasks=("ner",), overrides=FAST)
    assert len(run_experiment("table1", given).results["test"]["runs"]) == 4
    assert caplog.text.count("GENE") == 1


def test_the_training_file_is_no_test_file(options, tmp_path):
    given = options("table1", test_dir=tmp_path / "test", tasks=("ner",), overrides=FAST)
    (tmp_path / "test" / NER.dataset).mkdir(parents=True)
    train = given.data_dir / NER.dataset / "train.conll"
    (tmp_path / "test" / NER.dataset / "unseen.conll").write_bytes(train.read_bytes())
    with pytest.raises(
        InputError, match=r"--test: .*/unseen\.conll .*training file .*/train\.conll"
    ):
        run_experiment("table1", given)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.csv", "text,label\ngood,1\nbad,0\n", r"/train\.csv: .*CSV.*TSV .*JSON"),
        ("train.tsv", "text\tlabel\ngood\t1\n", r"/train\.tsv .* 1 of its units \(sentiment.* 2 "),
    ],
)
def test_a_training_set_that_cannot_be_divided_is_told_before_anything(
    options, tmp_path, name, content, message
):
    folder = tmp_path / "data" / SENTIMENT.dataset
    folder.mkdir(parents=True)
    (folder / name).write_text(content, encoding="utf-8")
    (folder / "dev.tsv").write_text("text\tlabel\ngood\t1\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        run_experiment(
            "table1", options("table1", data_dir=tmp_path / "data", tasks=("sentiment",))
        )
    assert not (tmp_path / "table1").exists()


def test_missing_test_files_are_told(options, tmp_path):
    test = write_test_data(tmp_path / "test")
    shutil.rmtree(test / NER.dataset)
    (test / QA.dataset / "test-2.json").touch()
    with pytest.raises(FileNotFoundError) as error:
        run_experiment("table1", options("table1", test_dir=test))
    for said in (f"/{NER.dataset}: Universal NER", "one test… file", "test-2.json", "--test"):
        assert said in str(error.value)


def test_the_dev_file_as_a_test_file_of_any_name_has_the_scores_of_dev(options, tmp_path):
    given = options("table1", test_dir=tmp_path / "test", tasks=("ner", "srl"), overrides=FAST)
    for dataset, name in ((NER.dataset, "unseen.conll"), (SRL.dataset, "some.jsonl")):
        (dev,) = (given.data_dir / dataset).glob("dev.*")
        (tmp_path / "test" / dataset).mkdir(parents=True)
        (tmp_path / "test" / dataset / name).write_bytes(dev.read_bytes())
    report = run_experiment("table1", given)
    values, on_test = (
        {run["id"]: run["value"] for run in runs}
        for runs in (report.results["runs"], report.results["test"]["runs"])
    )
    assert len(values) == 8
    assert values == on_test


def test_an_interrupted_experiment_goes_on_and_shows_what_it_has(options, tmp_path, monkeypatch):
    given = options("table1", tasks=("nli",), overrides=FAST)
    train, trained = execution.train_task, []

    def dies_at_the_third(config, *arguments, **more):
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(config)
        return train(config, *arguments, **more)

    monkeypatch.setattr(execution, "train_task", dies_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        run_experiment("table1", given)
    page = (tmp_path / "table1/table.md").read_text("utf-8")
    assert "Not run: 2 of 4" in page
    assert "nli (nli-snli-sample), elmo, 0.1 of the labels, seed 0: not yet run" in page
    monkeypatch.setattr(execution, "train_task", train)
    told = []
    given = replace(given, resume=True)
    report = run_experiment("table1", given, Listeners(on_plan=told.append))
    assert "4 runs planned, 2 of them already done" in told[0]
    assert not report.results["missing"]
    # the same as without the interruption
    whole = run_experiment("table1", options("w/table1", tasks=("nli",), overrides=FAST))
    assert [r["value"] for r in report.results["runs"]] == [
        r["value"] for r in whole.results["runs"]
    ]


def _note_what_is_resumed(monkeypatch):
    train, resumed = execution.train_task, []

    def noting(*arguments, resume, **more):
        resumed.append(resume)
        return train(*arguments, resume=resume, **more)

    monkeypatch.setattr(execution, "train_task", noting)
    return resumed


def _stop(start):
    """Return listeners that interrupt at a status."""

    def stop(status):
        if status.startswith(start):
            raise KeyboardInterrupt

    return Listeners(on_status=stop)


def _without_times(report):
    times = ("seconds", "wall_seconds", "date")
    return {
        run["id"]: {key: value for key, value in run.items() if key not in times}
        for run in report.results["runs"]
    }


def test_an_interrupted_training_goes_on_as_if_it_had_not_been(options, tmp_path, monkeypatch):
    given = {"tasks": ("nli",), "overrides": ("train.epochs=4", "train.patience=4", *FAST[1:2])}
    whole = run_experiment("table1", options("whole", **given))
    resumed = _note_what_is_resumed(monkeypatch)
    with pytest.raises(KeyboardInterrupt) as caught:
        run_experiment("table1", options("table1", **given), _stop("epoch 2"))
    (run_dir,) = (tmp_path / "table1/runs").iterdir()
    checkpoint = checkpoints_of(run_dir).latest
    assert any(str(checkpoint) in note and "--resume" in note for note in caught.value.__notes__)
    # the first part took an hour
    said = json.loads((checkpoint / "metadata.json").read_text("utf-8"))
    said["progress"]["seconds"] += 3600
    (checkpoint / "metadata.json").write_text(json.dumps(said), encoding="utf-8")
    report = run_experiment("table1", options("table1", resume=True, **given))
    assert resumed == [False, True, False, False, False]  # four runs, the first in two parts
    assert not report.results["missing"]
    assert _without_times(report) == _without_times(whole)
    result = json.loads((run_dir / "result.json").read_text("utf-8"))["result"]
    assert 3600 < result["seconds"] < result["wall_seconds"] < 7200
    files, of_whole = (
        {path.name for path in folder.iterdir()}
        for folder in (run_dir, tmp_path / "whole/runs" / run_dir.name)
    )
    assert files == of_whole
    assert CHECKPOINTS not in files


def test_a_run_that_was_out_of_time_goes_on(options, monkeypatch):
    given = {"tasks": ("nli",), "overrides": ("train.epochs=3", *FAST[1:]), "minutes": 60}
    resumed, now = _note_what_is_resumed(monkeypatch), [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    def wait(status):
        if status.startswith("epoch 2"):
            now[0] += 3600

    report = run_experiment("table1", options("table1", **given), Listeners(on_status=wait))
    stopped, *others = (row["reason"] for row in report.results["missing"])
    assert stopped == "no time left: it was started and stopped"
    assert others == ["no time left"] * 3
    report = run_experiment("table1", options("table1", resume=True, **given))
    assert not report.results["missing"]
    assert resumed == [False, True, False, False, False]


def test_a_training_whose_result_was_not_stored_is_not_repeated(options, monkeypatch):
    given = {"tasks": ("nli",), "overrides": FAST}
    resumed, write = _note_what_is_resumed(monkeypatch), RunStore.write

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunStore, "write", full)
    with pytest.raises(OSError, match="No space left"):
        run_experiment("table1", options("table1", **given))
    monkeypatch.setattr(RunStore, "write", write)
    report = run_experiment("table1", options("table1", resume=True, **given))
    assert not report.results["missing"]
    assert resumed == [False, True, False, False, False]


@pytest.mark.parametrize("left", ["nothing", "a damaged log", "a damaged checkpoint"])
def test_what_an_accident_left_of_a_training(left, options, tmp_path):
    given = {"tasks": ("nli",), "overrides": ("train.epochs=3", *FAST[1:2])}
    with pytest.raises(KeyboardInterrupt):
        run_experiment("table1", options("table1", **given), _stop("epoch 2"))
    again = options("table1", resume=True, **given)
    (run_dir,) = (tmp_path / "table1/runs").iterdir()
    if left == "nothing":
        shutil.rmtree(run_dir / CHECKPOINTS)  # beside the model
    elif left == "a damaged log":
        rows = (run_dir / "metrics.jsonl").read_text("utf-8").splitlines(keepends=True)
        (run_dir / "metrics.jsonl").write_text(rows[0], encoding="utf-8")
        with pytest.raises(FormatError, match=r"metrics\.jsonl .* Remove .*" + run_dir.name):
            run_experiment("table1", again)
        shutil.rmtree(run_dir)
    else:
        for checkpoint in (run_dir / CHECKPOINTS).iterdir():
            (checkpoint / "model.safetensors").write_bytes(b"")
        with pytest.raises(FormatError, match=f"is damaged: delete .*{run_dir.name}"):
            run_experiment("table1", again)
        shutil.rmtree(run_dir / CHECKPOINTS)
    assert not run_experiment("table1", again).results["missing"]


def test_an_update_after_the_checkpoint_is_made_again(options, tmp_path, monkeypatch):
    given = {
        "tasks": ("ner",), "overrides": ("train.epochs=2", "train.batch_size=4", *FAST[1:2]),
    }  # fmt: skip
    whole = run_experiment("table1", options("whole", **given))
    resumed, save, saved = _note_what_is_resumed(monkeypatch), SavedTraining._save, []

    def killed(training):
        if len(saved) == 7:
            raise KeyboardInterrupt
        saved.append(training)
        save(training)

    monkeypatch.setattr(SavedTraining, "_save", killed)
    monkeypatch.setattr(train_task, "CHECKPOINT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        run_experiment("table1", options("table1", **given))
    monkeypatch.setattr(SavedTraining, "_save", save)
    report = run_experiment("table1", options("table1", resume=True, **given))
    assert resumed == [False, True, False, False, False]
    assert _without_times(report) == _without_times(whole)


def test_a_diverged_training_is_not_kept(options, tmp_path):
    given = ("train.epochs=3", "train.learning_rate=1e30", *FAST[1:])
    report = run_experiment("table1", options("table1", tasks=("nli",), overrides=given))
    reasons = [one["reason"] for one in report.results["missing"]]
    assert len(reasons) == 4
    assert all("not finite" in reason for reason in reasons)
    for run_dir in (tmp_path / "table1/runs").iterdir():
        assert [path.name for path in run_dir.iterdir()] == ["diverged.json"]


def test_controls_are_tested_against_elmo(options):
    given = {"tasks": ("nli", "ner"), "overrides": FAST}
    report = run_experiment("controls", options("controls", **given))
    assert not report.results["missing"]
    tested = [(row["task"], row["condition"]) for row in report.results["comparisons"]]
    assert tested.count(("nli", "static, at the output too")) == 1
    assert ("ner", "static, at the output too") not in tested
    assert len(tested) == 11
    assert {row["reference"] for row in report.results["comparisons"]} == {"elmo"}


def test_runs_are_taken_over_from_another_experiment_by_copying_them(
    options, tmp_path, monkeypatch
):
    pytest.importorskip("matplotlib")
    given = {"tasks": ("nli",), "overrides": FAST}
    run_experiment("table1", options("table1", **given))
    shutil.copytree(tmp_path / "table1/runs", tmp_path / "figure2/runs")
    monkeypatch.setattr(execution, "train_task", lambda *_, **__: pytest.fail("trained again"))
    told = []
    report = run_experiment("figure2", options("figure2", **given), Listeners(told.append))
    assert "1 run planned, 1 of them already done" in told[0]
    (run,) = report.results["runs"]
    assert [mix["position"] for mix in run["layer_weights"]] == ["input", "output"]
    assert all(sum(mix["weights"]) == pytest.approx(1) for mix in run["layer_weights"])
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


def _other_model(folder, tmp_path):
    toy_model(seed=9).save(tmp_path / "other")
    return {"model": str(tmp_path / "other")}


def _other_vectors(folder, tmp_path):
    text = (folder / "vectors.txt").read_text("utf-8")
    (tmp_path / "other.txt").write_text(text.replace("lives ", "died "), encoding="utf-8")
    return {"vectors": tmp_path / "other.txt"}


def _other_data(folder, tmp_path):
    shutil.copytree(folder / "data", tmp_path / "data")
    path = tmp_path / "data" / NLI.dataset / "train.jsonl"
    path.write_text(path.read_text("utf-8") + "\n", encoding="utf-8")
    return {"data_dir": tmp_path / "data"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_other_model, "biLM was"),
        (_other_vectors, "word vectors was"),
        (_other_data, r"tasks\.nli-snli-sample\.data\.train was"),
        (
            lambda *_: {"overrides": (*FAST, "train.learning_rate=0.1")},
            "--set was .* and is now .*rate=0.1",
        ),
        (lambda *_: {"overrides": FAST[1:]}, "--set was "),
        (lambda *_: {"tune": True}, "--tune was False and is now True"),
    ],
)
def test_only_the_same_experiment_is_resumed(options, folder, tmp_path, change, message):
    given = {"tasks": ("nli",), "overrides": FAST, "minutes": 1e-9}
    run_experiment("table1", options("table1", **given))
    before = (tmp_path / "table1/results.json").read_bytes()
    other = given | change(folder, tmp_path)
    with pytest.raises(ConfigError, match=f"/table1 holds another experiment: .*{message}"):
        run_experiment("table1", options("table1", resume=True, **other))
    with pytest.raises(ConfigError, match="experiment was 'table1' and is now 'table2'"):
        run_experiment("table2", options("table1", resume=True, **given))
    with pytest.raises(FileExistsError, match=r"/table1 already holds .*--resume"):
        run_experiment("table1", options("table1", **given))
    assert (tmp_path / "table1/results.json").read_bytes() == before


def test_tasks_and_seeds_can_be_added(options):
    given = {"overrides": FAST, "resume": True}
    first = run_experiment("table1", options("table1", tasks=("ner",), **given))  # starts
    told = []
    report = run_experiment(
        "table1", options("table1", tasks=("ner", "nli"), seeds=2, **given),
        Listeners(on_plan=told.append),
    )  # fmt: skip
    assert "16 runs planned, 4 of them already done" in told[0]
    assert not report.results["missing"]
    with pytest.raises(ConfigError, match="--set was "):
        run_experiment("table1", options("table1", tasks=("ner",), resume=True))
    again = run_experiment("table1", options("table1", tasks=("ner",), **given))
    assert _without_times(again) == _without_times(first)


@pytest.mark.parametrize("resume", [True, False])
def test_foreign_files_are_not_replaced(options, tmp_path, resume):
    (tmp_path / "table1").mkdir()
    (tmp_path / "table1/results.json").write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError, match=r"/table1 has files .*results\.json"):
        run_experiment("table1", options("table1", tasks=("ner",), resume=resume))
    assert (tmp_path / "table1/results.json").read_text("utf-8") == "mine"


def test_the_learning_rate_is_chosen_on_the_held_out_part(options, tmp_path):
    told, advances = [], []
    report = run_experiment(
        "table1",
        options("table1", tasks=("nli",), overrides=FAST, tune=True),
        Listeners(on_plan=told.append, on_advance=advances.append),
    )
    # 2 conditions × 3 rates; one of each three is the run of the table
    assert "8 runs planned" in told[0]
    assert {advance.total for advance in advances} == {8}
    assert [one.done for one in advances if one.result is not None] == list(range(1, 9))
    scores = {}
    for path in (tmp_path / "table1/runs").glob("*/result.json"):
        stored = json.loads(path.read_text("utf-8"))
        if stored["run"]["share"] == 1:
            rate = stored["run"]["metadata"]["config"]["train"]["learning_rate"]
            (epoch,) = stored["result"]["epochs"]
            scores[stored["run"]["condition"], rate] = epoch["held_out"]
    assert len(scores) == 6
    assert "learning rate and epoch were chosen on a part" in report.results["made"]["scored"]
    for run in report.results["runs"]:
        rate = run["config"]["train"]["learning_rate"]
        best = max(
            value for (condition, _), value in scores.items() if condition == run["condition"]
        )
        assert scores[run["condition"], rate] == best


def test_while_further_tasks_are_tuned_the_finished_ones_stay_in_the_report(options, tmp_path):
    first = run_experiment("table1", options("table1", tasks=("nli",), overrides=FAST, tune=True))

    def stop(advance):
        if advance.result is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(
            "table1",
            options("table1", tasks=("ner", "nli"), overrides=FAST, tune=True, resume=True),
            Listeners(on_advance=stop),
        )
    now = json.loads((tmp_path / "table1/results.json").read_text("utf-8"))
    assert [run["id"] for run in now["runs"]] == [run["id"] for run in first.results["runs"]]
    assert len(now["missing"]) == 4
    assert all("ner" in str(run) for run in now["missing"])


def test_rates_that_an_earlier_command_tuned_are_used(options, folder, tmp_path):
    usual = NLI.learning_rate
    earlier = {"experiment": "table1", "tuned": True, "runs": [
        {"task": "nli", "dataset": "nli-snli-sample", "condition": condition,
         "config": {"train": {"learning_rate": factor * usual}}}
        for condition, factor in (("static", 2), ("elmo", 0.5))
    ]}  # fmt: skip
    path = tmp_path / "earlier.json"
    path.write_text(json.dumps(earlier), encoding="utf-8")
    given = {"tasks": ("nli",), "overrides": FAST, "rates": path}
    report = run_experiment("controls", options("controls", **given))
    assert not report.results["missing"]
    rates = {
        run["condition"]: run["config"]["train"]["learning_rate"] for run in report.results["runs"]
    }
    assert {rates[name] for name in ("static", "static, at the output too")} == {2 * usual}
    assert {rates[name] for name in ("elmo", "untrained biLM", "layer 0")} == {usual / 2}
    assert report.results["tuned"] is True
    assert str(path) in report.results["made"]["learning rates"]
    assert "learning rate and epoch were chosen on a part" in report.results["made"]["scored"]
    with pytest.raises(InputError, match=r"earlier\.json .*ner, ner-en-uner-ewt, static"):
        run_experiment("table1", options("table1", **{**given, "tasks": ("ner",)}))


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
    """Layers of the biLM, trained or not; neighbors in context (table 4); classifiers (table 6).

    What a result says of its machine asks for it, too.
    """
    from elmokit.embed import embedder
    from elmokit.experiments import runs
    from elmokit.probes import pos

    asked = []

    def pick(place):
        return lambda device: asked.append((place.__name__, device)) or torch.device("cpu")

    for place in (embedder, pos, runs, module):
        monkeypatch.setattr(place, "pick_device", pick(place))
    given = options(name, device="cuda:7")
    asked.clear()
    report = run_experiment(name, given)
    assert not report.results["missing"]
    assert {device for _, device in asked} == {"cuda:7"}
    expected = {embedder, runs} | ({pos} if name == "table6" else set())
    assert {place for place, _ in asked} == {place.__name__ for place in expected}


def test_missing_data_are_told_before_anything_is_computed(options, tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        run_experiment("korean", options("korean", data_dir=tmp_path))
    assert str(tmp_path / "ud-ko-kaist") in str(error.value)
    assert "KLUE-NLI: JSON lines of premise, hypothesis, label" in str(error.value)
    assert not (tmp_path / "korean").exists()
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
        ("table5", {"test_dir": Path("test")}, "table5 .*--test"),
        ("table6", {"rates": Path("results.json")}, "table6 .*--rates"),
        (
            "table1",
            {"rates": Path("results.json"), "overrides": ("train.learning_rate = 0.1",)},
            r"--rates .*--set train\.learning_rate",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(options, monkeypatch, name, changes, message):
    monkeypatch.setattr(inputs, "packaged_models", lambda: ["en"])
    with pytest.raises(InputError, match=message):
        run_experiment(name, options(name, **changes))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("seeds", 0, r"`seeds` .* 0\."),
        ("minutes", 0.0, r"`minutes` .* 0\.0\."),
        ("minutes", float("nan"), r"`minutes` .* nan\."),
        ("device", "gpu", "'gpu'"),
    ],
)
def test_impossible_options_are_refused(options, name, value, message):
    with pytest.raises(InputError, match=message):
        options("table1", **{name: value})
    with pytest.raises(InputError, match="`rates` or `tune`"):
        options("table1", rates=Path("results.json"), tune=True)


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
    train, rates, usual = execution.train_task, [], NLI.learning_rate

    def diverges_at_a_high_rate(config, *arguments, **more):
        rates.append(config.train.learning_rate)
        if config.train.learning_rate > 0.75 * usual:
            raise FloatingPointError("The loss is not finite.")
        return train(config, *arguments, **more)

    monkeypatch.setattr(execution, "train_task", diverges_at_a_high_rate)
    given = options("figure2", tasks=("nli",), overrides=FAST, tune=True, resume=True)
    pytest.importorskip("matplotlib")
    report = run_experiment("figure2", given)
    assert not report.results["missing"]
    assert sorted(rates) == [usual / 2, usual, 2 * usual]
    assert report.results["runs"][0]["config"]["train"]["learning_rate"] == usual / 2
    run_experiment("figure2", given)
    assert len(rates) == 3  # nothing is tried again


def test_the_model_of_the_package_is_meant_where_none_is_named(tmp_path, monkeypatch):
    from elmokit.weights.locate import PACKAGED_MODELS

    monkeypatch.chdir(tmp_path)
    for name, language in (("korean", "ko"), ("table1", "en")):
        (tmp_path / language).mkdir()
        (tmp_path / language / "config.json").touch()
        assert inputs.model_path(find_experiment(name), None) == PACKAGED_MODELS / language
