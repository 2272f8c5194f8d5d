"""The tables of scores in README, docs and cards are those that the experiments wrote."""

import importlib
import json
import re
from pathlib import Path

import pytest

from elmokit.weights.locate import PACKAGED_MODELS
from elmokit.weights.model_dir import load_model

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/results/experiments"


@pytest.fixture
def publish(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "recipes")
    return importlib.import_module("publish")


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "README.ko.md",
        "docs/results/experiments.md",
        "docs/ko/results/index.md",
        "docs/guides/taggers.md",
        "docs/ko/guides/taggers.md",
    ],
)
def test_tables_have_the_published_numbers(publish, document):
    text = (ROOT / document).read_text("utf-8")
    assert "begin -->" in text
    assert publish.with_tables(document) == text


def test_every_page_has_its_numbers_and_a_model_of_the_package_or_says_which(publish):
    shipped = [load_model(PACKAGED_MODELS / name).model_hash() for name in publish.SOURCES]
    overview = (PAGES.parent / "experiments.md").read_text("utf-8")
    pages = sorted(PAGES.glob("*.md"))
    assert len(pages) >= 6
    for page in pages:
        results = json.loads(page.with_suffix(".json").read_text("utf-8"))
        is_shipped = any(publish.is_made_with(results, one) for one in shipped)
        assert is_shipped or f"`{results['made']['biLM'].split()[-1]}`" in overview
        assert f"- command: {results['made']['command']}" in page.read_text("utf-8")
        assert not publish.FOREIGN_PATH.search(page.read_text("utf-8"))


@pytest.mark.parametrize("language", ["en", "ko"])
def test_cards_have_the_published_scores_of_their_model(publish, language):
    results = publish.read_published(publish.SOURCES[language])
    model = load_model(PACKAGED_MODELS / language)
    card = (PACKAGED_MODELS / language / "README.md").read_text("utf-8")
    scores = publish.card_scores(results)["scores"]
    assert publish.is_made_with(results, model.model_hash())
    assert list(model.training_metadata["scores"]) == list(scores)
    for task, text in scores.items():
        assert re.search(re.escape(text.split(",")[0]), card), task


@pytest.mark.parametrize("document", ["docs/results/experiments.md", "docs/ko/results/index.md"])
def test_what_few_seeds_leave_out_and_what_was_decided_late_stands_below_each_table(document):
    text = (ROOT / document).read_text("utf-8")
    late = {
        "en": "Not everything was settled before the runs",
        "ko": "실행 전에 정하지는 않았습니다",
    }
    sentence = late["ko" if "/ko/" in document else "en"]
    for language, mark in (("en", "‡"), ("ko", "†")):
        table, rest = text.split(f"scores {language}: begin -->")[1].split("<!--", 1)
        below = rest.split("##")[0].split("begin -->")[0]
        assert mark in table
        assert f"\n{mark} " in below
        assert sentence in below
