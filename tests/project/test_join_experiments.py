"""Parts of an experiment, joined, are what one run of it would have written."""

import importlib.util
import json
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError

ROOT = Path(__file__).parents[2]
KOREAN = ROOT / "docs/results/experiments/korean.json"
MADE = ("command", "written", "seeds")


@pytest.fixture(scope="module")
def recipe():
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
    return part


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


def test_two_parts_make_the_page_of_the_whole(recipe, published, write, tmp_path):
    parts = [
        write("one", part_of(published, "qa", "ner", command="`first`")),
        write("two", part_of(published, "pos", "sentiment", "nli", command="`second`")),
    ]
    report = recipe.join([recipe.read_part(path) for path in parts], tmp_path / "joined/korean")
    written = json.loads((tmp_path / "joined/korean/results.json").read_text(encoding="utf-8"))
    for name in ("experiment", "title", "tables", "comparisons", "gain_changes"):
        assert written[name] == published[name], name
    for name in ("runs", "ended_at_their_best"):
        assert sorted(written[name], key=str) == sorted(
            map(plus_new_settings, published[name]), key=str
        )
    assert [one["run"] for one in written["missing"]] == [
        one["run"] for one in published["missing"]
    ]
    assert written["made"]["command"] == "`first`; `second`"
    assert written["made"]["word vectors"] == published["made"]["word vectors"]
    page, expected = report.markdown, KOREAN.with_suffix(".md").read_text(encoding="utf-8")
    end = "\n## Not run"
    assert page.split(end)[0] == expected.split(end)[0]


def plus_new_settings(run):
    """A published run with the settings that were added since, at their defaults."""
    if isinstance(run, str):
        return run
    config = run["config"]
    return {**run, "config": {**config, "train": {"lowercase_share": 0.0, **config["train"]}}}


def test_tasks_that_no_part_has_are_not_run_yet_and_count(recipe, published, write, tmp_path):
    part = write("one", part_of(published, "ner"))
    report = recipe.join([recipe.read_part(part)], tmp_path / "out")
    whole, _ = report.results["comparisons"]
    assert whole["adjusted_p"] == pytest.approx(5 * whole["p_value"])
    missing = {one["run"] for one in report.results["missing"]}
    assert "qa (korquad-v1.0), elmo, seed 0" in missing
    assert {one["reason"] for one in report.results["missing"]} == {"not yet run"}


def test_a_tuned_rate_is_that_of_all_seeds(recipe, published, write, tmp_path):
    part = part_of(published, "ner")
    for run in part["runs"]:
        if run["condition"] == "elmo":
            run["config"]["train"]["learning_rate"] = 0.006
    report = recipe.join([recipe.read_part(write("one", part))], tmp_path / "out")
    rows = [row for row in report.results["tables"][-1]["rows"] if row[0] == "ner"]
    assert {row[-1] for row in rows} == {"static 0.003, elmo 0.006"}


def test_other_vectors_are_named_by_task(recipe, published, write, tmp_path):
    parts = [
        write("one", part_of(published, "ner")),
        write("two", part_of(published, "pos", **{"word vectors": "new.bin, hash 01"})),
    ]
    report = recipe.join([recipe.read_part(path) for path in parts], tmp_path / "out")
    assert report.results["made"]["word vectors"] == (
        f"ner: {published['made']['word vectors']}; pos: new.bin, hash 01"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda part: part["made"].update(biLM="ko, hash 0123"), r"differ in biLM: .*hash 0123"),
        (lambda part: part.update(experiment="table1"), "differ in experiment"),
        (lambda part: part["runs"][0].update(task="ner", dataset="ner-ko-kmou"), "both have ner"),
        (lambda part: part.update(test={}), "scores on test files"),
        (lambda part: part["runs"][0].update(seed=9), "pos, static, share 1, seed 9"),
        (lambda part: part["runs"][0]["config"].update(dropout=0.1), r"settings .*: dropout\."),
        (lambda part: part["comparisons"].clear(), "No part has a comparison of elmo and static"),
    ],
)  # fmt: skip
def test_parts_that_do_not_belong_together(recipe, published, write, tmp_path, change, message):
    other = part_of(published, "pos")
    change(other)
    parts = [write("one", part_of(published, "ner")), write("two", other)]
    with pytest.raises((InputError, FormatError), match=message):
        recipe.join([recipe.read_part(path) for path in parts], tmp_path / "out")
    assert not (tmp_path / "out/results.json").exists()


def test_a_folder_without_results_is_said(recipe, tmp_path):
    with pytest.raises(FormatError, match=r"results\.json is missing"):
        recipe.read_part(tmp_path)
