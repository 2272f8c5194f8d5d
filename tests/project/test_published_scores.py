"""Tables, notes and counts of published scores."""

import importlib
import json
import sys
from pathlib import Path

import pytest

RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.fixture(scope="module")
def recipe():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(RECIPES)
        yield importlib.import_module("published_scores")
    sys.modules.pop("published_scores")


@pytest.mark.parametrize(
    ("language", "found"), [("en", "earlier model (hash `0123`)"), ("ko", "이전 모델(해시 `0123`)")]
)
def test_a_table_of_another_model_says_so(recipe, language, found):
    results = RESULTS | {"made": {"biLM": "ko, hash 0123"}}
    assert "0123" not in recipe.notes_on(results, "01234567", language)
    assert found in recipe.notes_on(results, "76543210", language)


def test_a_table_of_some_of_the_seeds_says_so(recipe):
    scores, gains = RESULTS["tables"]
    first = [*scores["rows"][0][:5], "60.00 (1 of 3 seeds)", "59.00 ± 0.50 (2 of 3 seeds)"]
    results = RESULTS | {"made": {"biLM": "en, hash 0123"}}
    results["tables"] = [scores | {"rows": [first, *scores["rows"][1:]]}, gains]
    expected = recipe.scores_table(RESULTS, "en", "en")
    assert recipe.scores_table(results, "en", "en") == expected.replace("60.00 ± 1.00", "60.00")
    assert "Not all planned seeds" in recipe.notes_on(results, "0123", "en")
    assert "계획한 시드" in recipe.notes_on(results, "0123", "ko")


@pytest.mark.parametrize(("language", "found"), [("en", "† One seed"), ("ko", "† 조건마다")])
def test_the_p_of_one_seed_is_marked(recipe, language, found):
    results = RESULTS | {"made": {"biLM": "en, hash 0123"}}
    assert found in recipe.notes_on(results, "0123", language)
    scores, gains = RESULTS["tables"]
    results["tables"] = [scores, gains | {"rows": gains["rows"][:3]}]
    assert found not in recipe.notes_on(results, "0123", language)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_p_of_two_seeds_has_welchs_test_beside_it(recipe, language):
    values = {"elmo": (60.0, 65.0), "static": (40.0, 40.2)}
    runs = [
        {"dataset": "ner-en-uner-ewt", "condition": condition, "share": 1.0, "value": value}
        for condition, pair in values.items()
        for value in pair
    ]
    results = RESULTS | {"made": {"biLM": "en, hash 0123"}, "runs": runs}
    (note,) = recipe.two_seeds_notes(results, language)
    assert [figure in note for figure in ("0.14", "3.54", "0.070", "Welch")] == [True] * 4
    assert note in recipe.notes_on(results, "0123", language)
    assert "0.300 ‡" in recipe.scores_table(results, "en", language)
    third = [*runs, runs[0] | {"value": 62.0}]
    assert recipe.two_seeds_notes(results | {"runs": third}, language) == []


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("experiment", ["table1", "korean"])
def test_what_was_decided_after_scores_stands_beside_the_table(recipe, experiment, language):
    published = recipe.read_published(experiment)
    note = recipe.exceptions_note(published, language)
    assert note
    assert note in recipe.notes_on(published, recipe.scored_hash(published), language)


@pytest.mark.parametrize(("language", "found"), [("en", "The controls"), ("ko", "대조 조건")])
def test_controls_that_are_planned_and_not_published_are_told(
    recipe, language, found, tmp_path, monkeypatch
):
    monkeypatch.setattr(recipe, "PAGES", tmp_path)
    results = RESULTS | {"made": {"biLM": "en, hash 0123"}, "experiment": "table1"}
    assert found in recipe.notes_on(results, "0123", language)
    assert recipe.controls_note(results | {"experiment": "korean"}, language) == ""


def test_tasks_without_a_score_are_left_out_and_named(recipe):
    scores, gains = RESULTS["tables"]
    missing = ["qa", "squad-v1.1", "100 %", "F1", "9", "–", "–"]
    results = RESULTS | {"made": {"biLM": "en, hash 0123"}}
    assert "Not run" not in recipe.notes_on(results, "0123", "en")
    results["tables"] = [scores | {"rows": [*scores["rows"], missing]}, gains]
    expected = recipe.scores_table(RESULTS, "en", "en")
    assert recipe.scores_table(results, "en", "en") == expected
    assert "of 4," in recipe.counts_text(results)
    found = recipe.notes_on(results, "0123", "en")
    assert "Not run yet: question answering, SQuAD (F1)." in found
    assert "아직 실행하지 않은 과제: 질의응답" in recipe.notes_on(results, "0123", "ko")


SCORES = ["task", "data", "labels", "metric", "examples", "static", "elmo"]
GAINS = ["task", "data", "labels", "condition", "gain", "error reduction", "p (Holm)", "seeds"]
RESULTS = {
    "tables": [
        {"header": SCORES, "rows": [
            ["ner", "ner-en-uner-ewt", "100 %", "F1", "9", "60.00 ± 1.00", "59.00 ± 0.50"],
            ["ner", "ner-en-uner-ewt", "10 %", "F1", "1", "40.00", "50.00"],
            ["nli", "nli-snli-sample", "100 %", "accuracy", "9", "50.00", "–"],
            ["srl", "srl-en-propbank-ewt", "100 %", "F1", "9", "50.00", "60.00"],
        ]},
        {"header": GAINS, "rows": [
            ["ner", "ner-en-uner-ewt", "100 %", "elmo", "-1.00", "-2.5 %", "0.300", "2"],
            ["ner", "ner-en-uner-ewt", "100 %", "layer 0", "-3.00", "-7.5 %", "0.900", "2"],
            ["ner", "ner-en-uner-ewt", "10 %", "elmo", "+10.00", "16.7 %", "< 0.001", "2"],
            ["srl", "srl-en-propbank-ewt", "100 %", "elmo", "+10.00", "20.0 %", "0.010", "1"],
        ]},
    ],
    "comparisons": [
        {"condition": "elmo", "dataset": dataset, "share": share, "gain": gain, "adjusted_p": p,
         "error_reduction": error_reduction}
        for dataset, share, gain, p, error_reduction in (
            ("n", 1.0, -1.0, 0.3, -2.5), ("n", 0.1, 10.0, 0.001, 16.7),
            ("s", 1.0, 10.0, 0.01, 20.0), ("s", 0.1, 9.0, 0.01, 20.0),
            ("q", 1.0, 1.0, 0.06, 5.9),
        )
    ] + [{"condition": "untrained biLM", "dataset": "n", "share": 1.0, "gain": 5.0,
          "adjusted_p": 0.01, "error_reduction": 9.0}],
    "gain_changes": [
        {"condition": condition, "change": change, "adjusted_p": p}
        for condition, change, p in (
            ("elmo", 11.0, 0.01), ("elmo", 0.5, 0.6), ("elmo", -1.0, 0.01), ("average", 9.0, 0.01)
        )
    ],
    "experiment": "korean",
}  # fmt: skip


def test_a_table_shows_what_is_there_and_what_is_not(recipe):
    header, _, ner, nli, srl = recipe.scores_table(RESULTS, "en", "ko").splitlines()
    assert header.startswith("| 영어 | 정적 벡터 |")
    assert ner == (
        "| 개체명 인식, UNER-EWT (F1) | **60.00 ± 1.00** | 59.00 ± 0.50 | -2.5 % | 0.300 "
        "| 40.00 → 50.00 | 16.7 % |"
    )
    assert nli == "| 자연어 추론, SNLI (정확도) | 50.00 | – | – | – | – | – |"
    assert (
        srl == "| 의미역 결정, PropBank-EWT (F1) | 50.00 | **60.00** | 20.0 % | 0.010 † | – | – |"
    )


def test_conditions_stand_side_by_side(recipe):
    table = {"header": [*SCORES[:5], "input", "output"], "rows": [
        ["srl", "srl-en-propbank-ewt", "100 %", "F1", "9", "61.00 ± 0.50", "54.00"],
        ["nli", "nli-snli-sample", "100 %", "accuracy", "9", "60.00 (1 of 2 seeds)", "–"],
        ["qa", "squad-v1.1", "100 %", "–", "–", "–", "–"],
    ]}  # fmt: skip
    header, _, srl, nli = recipe.conditions_table({"tables": [table]}).splitlines()
    assert header == "|  | input | output |"
    assert srl == "| semantic role labeling, PropBank-EWT (F1) | **61.00 ± 0.50** | 54.00 |"
    assert nli == "| natural language inference, SNLI (accuracy) | **60.00** | – |"


def test_tasks_that_gain_are_counted(recipe):
    assert recipe.counts_text(RESULTS) == (
        "better on **2** of 3, p < 0.05 (Holm) on **1**, at least 6 % on **1**; with a tenth of "
        "the labels the gain is larger on **2**, p < 0.05 (Holm) on **1**"
    )


def test_every_data_set_of_the_tables_has_a_name(recipe):
    from elmokit.experiments.definitions import find_experiment

    tasks = [task for name in ("table1", "korean") for task in find_experiment(name).tasks]
    assert {task.dataset for task in tasks} == set(recipe.LABELS)


@pytest.fixture
def published_controls(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(recipe, "PAGES", tmp_path)

    def publish(*found, bilm="en, hash 0123"):
        keys = ("task", "dataset", "condition", "gain", "adjusted_p")
        against = [dict(zip(keys, one, strict=True)) | {"seeds": [0, 1]} for one in found]
        text = json.dumps({"comparisons": against, "made": {"biLM": bilm}})
        (tmp_path / "controls.json").write_text(text, encoding="utf-8")

    return publish


OF_TABLE1 = RESULTS | {"experiment": "table1", "made": {"biLM": "en, hash 0123"}}
CONTROLS_OF_NER = [
    ("ner", "ner-en-uner-ewt", condition, gain, p)
    for condition, gain, p in (
        ("static", -9.0, 0.001), ("static, as wide as elmo", -6.0, 0.001),
        ("untrained biLM", -4.0, 0.04), ("layer 0", -2.0, 0.06),
        ("average of the layers", 0.2, 0.001),
    )
]  # fmt: skip


@pytest.mark.parametrize(
    ("language", "found"),
    [
        ("en", ["on 1 of 3 tasks (named entity recognition, UNER-EWT), with 2 seeds",
                "as wide as ELMo: 1 of 1 (1)", "an untrained biLM: 1 of 1 (1)",
                "token layer alone: 1 of 1 (0)", "average of the layers: 0 of 1 (0)"]),
        ("ko", ["3개 과제 중 1개(개체명 인식, UNER-EWT)에서 시드 2개",
                "토큰 층만 쓰는 조건: 1개 중 1개(0개)", "층의 단순 평균: 1개 중 0개(0개)"]),
    ],
)  # fmt: skip
def test_what_controls_say_is_told_with_the_tasks_that_have_run(
    recipe, language, found, published_controls
):
    published_controls(*CONTROLS_OF_NER)
    note = recipe.controls_note(OF_TABLE1, language)
    for one in found:
        assert one in note


def test_a_task_counts_once_all_its_controls_have_run(recipe, published_controls):
    none = recipe.controls_note(OF_TABLE1, "en")
    assert "have not run yet" in none
    published_controls(CONTROLS_OF_NER[0])
    assert recipe.controls_note(OF_TABLE1, "en") == none, "static vectors are no control"
    published_controls(*CONTROLS_OF_NER[:-1])
    assert recipe.controls_note(OF_TABLE1, "en") == none
    nli = [("nli", "nli-snli-sample", *rest) for _, _, *rest in CONTROLS_OF_NER]
    published_controls(*CONTROLS_OF_NER, *nli)
    assert "on 1 of 3 tasks" in recipe.controls_note(OF_TABLE1, "en"), "not at the output too"
    published_controls(*CONTROLS_OF_NER, *nli, (*nli[0][:2], "static, at the output too", 1, 1))
    assert "on 2 of 3 tasks" in recipe.controls_note(OF_TABLE1, "en")
    published_controls(*CONTROLS_OF_NER, bilm="en, hash 4567")
    assert recipe.controls_note(OF_TABLE1, "en") == none, "of another model"
