"""Parts of an experiment, joined, are what one run of it would have written."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError, MissingExtraError

ROOT = Path(__file__).parents[2]
KOREAN = ROOT / "docs/results/experiments/korean.json"


@pytest.fixture
def recipe(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "recipes"))
    path = ROOT / "recipes/join_experiments.py"
    spec = importlib.util.spec_from_file_location("join_experiments", path)
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    return recipe


def part_of(results, *tasks, **made):
    """The published results of some tasks, as `--tasks` would have written them."""
    part = {**results, "made": {**results["made"], **made}}
    for name in ("runs", "comparisons", "gain_changes"):
        # alone, a task would have been adjusted for itself
        part[name] = [one | {"adjusted_p": 0.5} if "adjusted_p" in one else one
                      for one in results[name] if one["task"] in tasks]  # fmt: skip
    part["missing"] = [one for one in results["missing"] if one["run"].split()[0] in tasks]
    part["tables"] = [
        {**table, "rows": [row for row in table["rows"] if row[0] in tasks]}
        for table in results["tables"]
    ]
    return json.loads(json.dumps(part))


def lose_seed(part, task, seed, *, reason):
    """Make a part say that the runs of a seed are missing, and why."""
    lost = [run for run in part["runs"] if (run["task"], run["seed"]) == (task, seed)]
    part["runs"] = [run for run in part["runs"] if run not in lost]
    for run in lost:
        share = "" if run["share"] == 1 else f", {run['share']:.4g} of the labels"
        name = f"{task} ({run['dataset']}), {run['condition']}{share}, seed {seed}"
        part["missing"].append({"run": name, "id": run["id"], "reason": reason})
    for one in part["comparisons"]:
        if one["task"] == task:
            for name in ("seeds", "reference_seeds"):
                one[name] = [number for number in one[name] if number != seed]


@pytest.fixture
def published():
    return json.loads(KOREAN.read_text(encoding="utf-8"))


@pytest.fixture
def write(tmp_path):
    def write(name, results):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
        return folder

    return write


def plus_new_settings(run):
    """A published run with the settings that were added since, at their defaults."""
    train = {"lowercase_share": 0.0, **run["config"]["train"]}
    return {**run, "config": {**run["config"], "train": train}}


def test_two_parts_make_the_page_of_the_whole(recipe, published, write, tmp_path):
    parts = [
        write("one", part_of(published, "qa", "ner", biLM="/a/ko, hash 1d69f7b90c6f")),
        write("two", part_of(published, "pos", "sentiment", "nli", command="`x --seed 2`")),
    ]
    report = recipe.join([recipe.read_part(path) for path in parts], tmp_path / "joined/korean")
    written = json.loads((tmp_path / "joined/korean/results.json").read_text(encoding="utf-8"))
    for name in ("experiment", "title", "tables", "comparisons", "gain_changes", "missing"):
        assert written[name] == published[name], name
    assert written["runs"] == list(map(plus_new_settings, published["runs"]))
    assert written["ended_at_their_best"] == published["ended_at_their_best"]
    expected = KOREAN.with_suffix(".md").read_text(encoding="utf-8")
    tables, made = report.markdown.split("## How it was made\n")
    assert tables == expected.split("## How it was made\n")[0]
    assert f"- command: {published['made']['command']}; `x --seed 2`\n" in made
    assert "- biLM: /a/ko, hash 1d69f7b90c6f\n" in made
    for name in ("hardware", "versions", "word vectors", "seeds", "scored"):
        assert f"- {name}: {published['made'][name]}\n" in made, name


def test_tasks_that_no_part_has_are_missing_and_count_as_tests(recipe, published, write, tmp_path):
    part = part_of(published, "ner")
    lose_seed(part, "ner", 2, reason="no time left")
    report = recipe.join([recipe.read_part(write("one", part))], tmp_path / "out")
    whole, _ = report.results["comparisons"]
    assert whole["adjusted_p"] == pytest.approx(5 * whole["p_value"])
    reasons = {one["run"]: one["reason"] for one in report.results["missing"]}
    assert reasons["qa (korquad-v1.0), elmo, seed 0"] == "in no part"
    assert reasons["ner (ner-ko-kmou), elmo, seed 2"] == "no time left"


def test_an_experiment_can_be_shown_with_the_runs_of_another_one(recipe, tmp_path):
    pages = KOREAN.parent
    parts = [recipe.read_part(pages / "table1.json")]
    pytest.importorskip("matplotlib")
    recipe.join(parts, tmp_path / "joined", name="figure2")
    joined = json.loads((tmp_path / "joined/results.json").read_text(encoding="utf-8"))
    published = json.loads((pages / "figure2.json").read_text(encoding="utf-8"))
    for name in ("experiment", "tables", "comparisons", "missing"):
        assert joined[name] == published[name], name
    assert {run["condition"] for run in joined["runs"]} == {"elmo"}
    assert (tmp_path / "joined/plot.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "figure1_korean",
            r"korean\.json has the runs of korean, without pos .* 0\.3 of the labels",
        ),
        ("gum", "No part has a run of gum"),
    ],
)
def test_an_experiment_with_other_runs_is_refused(recipe, tmp_path, name, message):
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match=message):
        recipe.join([recipe.read_part(KOREAN)], tmp_path / "joined", name=name)
    assert not (tmp_path / "joined").exists()


def test_rates_of_an_earlier_command_are_told_with_their_tasks(recipe, published, write, tmp_path):
    parts = [
        write("one", part_of(published, "pos", **{"learning rates": "tuned before"})),
        write("two", part_of(published, "ner")),
    ]
    report = recipe.join([recipe.read_part(path) for path in parts], tmp_path / "out")
    assert report.results["made"]["learning rates"] == "pos: tuned before"


def test_a_missing_run_is_told_by_the_part_that_has_its_task(recipe, published, write, tmp_path):
    whole, other = part_of(published, "ner"), part_of(published, "pos")
    lose_seed(other, "pos", 2, reason="diverged")
    # a part for all tasks, which ran out of time
    whole["missing"] += [one | {"reason": "no time left"} for one in other["missing"]]
    parts = [write("one", whole), write("two", other)]
    for order in (parts, parts[::-1]):
        report = recipe.join([recipe.read_part(path) for path in order], tmp_path / "out")
        found = [one for one in report.results["missing"] if one["run"].startswith("pos")]
        assert {one["reason"] for one in found} == {"diverged"}


def test_a_tuned_rate_is_that_of_all_seeds(recipe, published, write, tmp_path):
    part = part_of(published, "ner")
    for run in part["runs"]:
        if run["condition"] == "elmo":
            run["config"]["train"]["learning_rate"] = 0.003
    report = recipe.join([recipe.read_part(write("one", part))], tmp_path / "out")
    rows = [row for row in report.results["tables"][-1]["rows"] if row[0] == "ner"]
    assert {row[-1] for row in rows} == {"static 0.006, elmo 0.003"}


def test_other_vectors_are_named_by_task(recipe, published, write, tmp_path):
    parts = [
        write("one", part_of(published, "ner")),
        write("two", part_of(published, "pos", **{"word vectors": "new.bin, hash 01"})),
    ]
    report = recipe.join([recipe.read_part(path) for path in parts], tmp_path / "out")
    assert report.results["made"]["word vectors"] == (
        f"ner: {published['made']['word vectors']}; pos: new.bin, hash 01"
    )


def test_a_joint_report_is_a_part(recipe, published, write, tmp_path):
    parts = [
        write("one", part_of(published, "qa", "ner")),
        write("two", part_of(published, "pos", **{"word vectors": "new.bin, hash 01"})),
        write("three", part_of(published, "nli", **{"word vectors": "newer.bin, hash 02"})),
    ]
    at_once = recipe.join([recipe.read_part(path) for path in parts], tmp_path / "at-once")
    recipe.join([recipe.read_part(path) for path in parts[:2]], tmp_path / "first")
    later = [recipe.read_part(path) for path in (tmp_path / "first", parts[2])]
    report = recipe.join(later, tmp_path / "later")
    del at_once.results["made"]["written"], report.results["made"]["written"]
    assert report.results == at_once.results


def first_of(part, name, **values):
    part[name][0].update(values)


def lose_without_a_reason(part):
    lose_seed(part, "pos", 2, reason="")
    part["missing"].pop()


def in_config(part, **values):
    part["runs"][0]["config"]["train"].update(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda part: part["made"].update(biLM="ko, hash 01"), r"in the hash of the biLM: .*'01'"),
        (lambda part: part["made"].update(scored="words"), "differ in the scored data"),
        (lambda part: part.update(tuned=False), "tuning of the rates: True"),
        (lambda part: part.update(experiment="table1"), "differ in the experiment"),
        (lambda part: first_of(part, "runs", task="ner", dataset="ner-ko-kmou"), "both have ner"),
        (lambda part: part["runs"].append(part["runs"][0]), "has the run .* twice"),
        (lambda part: part["runs"].clear(), "has no finished run"),
        (lambda part: part.update(test={}), "scores on test files"),
        (lambda part: first_of(part, "runs", seed=9), "without pos .*, seed 0.*--seeds"),
        (lose_without_a_reason, "without pos .*--seeds"),
        (lambda part: part["runs"].append({**part["runs"][0], "seed": 9}), r"planned.*, seed 9"),
        (lambda part: in_config(part, epochs=1), r"seed 0 has train\.epochs = 1, .* have 8"),
        (lambda part: in_config(part, epochs="many"), r"epochs.*Give the folder"),
        (lambda part: in_config(part, learning_rate=1.0), "rate of 1 in pos, static"),
        (lambda part: in_config(part, learning_rate=0.003), "several learning rates in pos"),
        (lambda part: part["tables"][-1]["rows"].pop(), "other settings of pos"),
        (lambda part: part["comparisons"].clear(), "a test of the gain of elmo in pos"),
        (lambda part: part["gain_changes"].clear(), "change of the gain of elmo in pos with 10 %"),
        (lambda part: first_of(part, "comparisons", seeds=[0, 7]), "not of the seeds"),
        (lambda part: part["runs"][0].pop("metric"), "a run lacks `metric`"),
        (lambda part: part["made"].pop("biLM"), "`made` lacks `biLM`"),
        (lambda part: part.pop("gain_changes"), "gain_changes.*by this version"),
    ],
)  # fmt: skip
def test_parts_that_do_not_belong_together(recipe, published, write, tmp_path, change, message):
    other = part_of(published, "pos")
    change(other)
    parts = [write("one", part_of(published, "ner")), write("two", other)]
    with pytest.raises((InputError, FormatError), match=message):
        recipe.join([recipe.read_part(path) for path in parts], tmp_path / "out")
    assert not (tmp_path / "out/results.json").exists()


def test_a_part_is_not_overwritten(recipe, published, write):
    folder = write("one", part_of(published, "ner"))
    before = (folder / "results.json").read_bytes()
    with pytest.raises(InputError, match=r"folder of a part.*another --output"):
        recipe.join([recipe.read_part(folder)], folder)
    assert (folder / "results.json").read_bytes() == before


def test_whether_rates_were_tuned_is_what_the_part_says(recipe, published, write, tmp_path):
    part = write("part", part_of(published | {"tuned": True}, "qa", command="``"))
    report = recipe.join([recipe.read_part(part)], tmp_path / "joined")
    assert report.results["tuned"] is True
    assert "learning rate and epoch were chosen" in report.results["made"]["scored"]


def test_only_a_report_of_the_experiment_is_replaced(recipe, published, write, tmp_path):
    part = recipe.read_part(write("part", part_of(published, "qa")))
    joined = tmp_path / "joined"
    recipe.join([part], joined)
    recipe.join([part], joined)  # it may grow
    before = joined / "results.json"
    before.write_text(json.dumps(json.loads(before.read_text()) | {"experiment": "table1"}))
    with pytest.raises(InputError, match=r"joined holds results of table1, not of korean"):
        recipe.join([part], joined)
    before.write_text('{"accuracy": 1}')
    with pytest.raises(FileExistsError, match=r"joined has files that no experiment wrote"):
        recipe.join([part], joined)
    assert before.read_text() == '{"accuracy": 1}'


def test_a_figure_needs_the_plots_before_anything_is_written(
    recipe, published, write, tmp_path, monkeypatch
):
    part = part_of(published, "ner")
    part["experiment"] = "figure1_korean"
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError):
        recipe.join([recipe.read_part(write("one", part))], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_names_what_it_wrote(recipe, published, write, tmp_path, monkeypatch, capsys):
    part, output = write("one", part_of(published, "ner")), tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["join", str(part), "-o", str(output)])
    recipe.main()
    assert capsys.readouterr().out.split() == [
        str(output / "results.json"),
        str(output / "table.md"),
    ]
