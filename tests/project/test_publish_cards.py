"""The cards of the packaged models have the scores that the experiments wrote."""

import importlib.util
import re
from pathlib import Path

import pytest

RECIPES = Path(__file__).parents[2] / "recipes"
SCORES = ["data", "labels", "static", "elmo"]
RESULTS = {
    "tables": [
        {"header": SCORES, "rows": [
            ["ner-en-uner-ewt", "100 %", "60.00 ± 1.00", "59.00 ± 0.50"],
            ["ner-en-uner-ewt", "10 %", "40.00", "50.00"],
            ["nli-snli-sample", "100 %", "50.00", "–"],
            ["sst-5", "100 %", "47.00 (1 of 3 seeds)", "46.00 (1 of 3 seeds)"],
            ["squad-v1.1", "100 %", "–", "–"],
        ]},
    ],
    "made": {"command": "`x`", "seeds": "0, 1", "scored": "the dev set"},
    "experiment": "table1",
    "comparisons": [
        {"dataset": dataset, "share": share, "condition": condition, "seeds": seeds}
        for dataset, share, condition, seeds in (
            ("ner-en-uner-ewt", 1.0, "elmo", [0, 1]), ("ner-en-uner-ewt", 0.1, "elmo", [0]),
            ("ner-en-uner-ewt", 1.0, "average", [0]), ("sst-5", 1.0, "elmo", [0]),
        )
    ],
}  # fmt: skip
FACTS = {"language": "xx"}


@pytest.fixture
def recipe(monkeypatch):
    monkeypatch.syspath_prepend(str(RECIPES))
    spec = importlib.util.spec_from_file_location("publish_cards", RECIPES / "publish_cards.py")
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    return recipe


@pytest.mark.parametrize("language", ["en", "ko"])
def test_cards_have_the_published_scores_of_their_model_and_nothing_else(recipe, language):
    from elmokit.weights.locate import PACKAGED_MODELS
    from elmokit.weights.model_dir import load_model

    results = recipe.read_published(recipe.SOURCES[language])
    model = load_model(PACKAGED_MODELS / language)
    if recipe.is_made_with(results, model.model_hash()):
        whole = {one["dataset"] for one in results["comparisons"] if one["share"] == 1}
        assert len(model.training_metadata["scores"]) == len(whole) >= 1
        assert model.training_metadata["scores"] == recipe.card_scores(results)
        assert model.training_metadata["scores_note"] == recipe.scores_note(results)
    else:
        assert not {"scores", "scores_note"} & model.training_metadata.keys()
    card = (PACKAGED_MODELS / language / "README.md").read_text(encoding="utf-8")
    assert card == model.card()


def test_the_korean_results_page_has_the_facts_of_the_cards(recipe):
    page = recipe.KOREAN_PAGE.read_text(encoding="utf-8")
    assert recipe.korean_cards(page) == page


@pytest.fixture
def models(tmp_path, workplace):
    from elmokit.weights.model_dir import load_model

    model = load_model(workplace / "model")
    model.round_to("float16")
    model.training_metadata = dict(FACTS)
    for name in ("en", "ko"):
        model.save(tmp_path / name, dtype="float16")
    return tmp_path


def results_of(model_hash):
    return {**RESULTS, "made": {**RESULTS["made"], "biLM": f"xx, hash {model_hash}"}}


def test_scores_come_to_what_the_card_says(recipe, models, monkeypatch):
    from elmokit.weights.model_dir import load_model

    results = results_of(load_model(models / "en").model_hash()[:12])
    monkeypatch.setattr(recipe, "read_published", lambda name: results)
    monkeypatch.setattr(recipe, "controls_note", lambda results, language: "No controls.")
    monkeypatch.setattr(recipe, "exceptions_note", lambda results, language: "No exceptions.")
    recipe.write_cards(models)
    facts = load_model(models / "ko").training_metadata
    scores = {
        "named entity recognition, UNER-EWT (span F1)": (
            "59.00 ± 0.50 (static word vectors: 60.00 ± 1.00), 2 seeds"
        ),
        "sentiment analysis, SST-5 (accuracy)": "46.00 (static word vectors: 47.00), 1 of 3 seeds",
    }
    note = (
        "In percent, of small task models trained on mostly reduced training sets; mean and "
        "standard deviation over the seeds of each task; scored on the dev set. Not comparable "
        "with published numbers. Not run yet: question answering, SQuAD (F1). No controls. "
        "No exceptions. Made by `x`."
    )
    assert facts == {**FACTS, "scores": scores, "scores_note": note}


def test_scores_of_another_model_come_to_no_card(recipe, models, monkeypatch):
    from elmokit.weights.model_dir import load_model

    right, wrong = load_model(models / "en").model_hash()[:12], "0123456789ab"
    monkeypatch.setattr(recipe, "read_published", lambda name: results_of(right))
    assert recipe.write_cards(models) == []
    monkeypatch.setattr(
        recipe, "read_published", lambda name: results_of(right if name == "table1" else wrong)
    )
    (sentence,) = recipe.write_cards(models)
    assert re.search(rf"korean\.json .*{wrong}.* ko .*experiment korean", sentence)
    assert load_model(models / "en").training_metadata["scores"]
    assert load_model(models / "ko").training_metadata == FACTS
