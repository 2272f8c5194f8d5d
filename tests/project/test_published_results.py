"""Scores in README, docs and cards are those that experiments wrote."""

import json

import pytest

from elmokit.weights.locate import PACKAGED_MODELS
from elmokit.weights.model_dir import load_model

from .test_documents import DOCS, read


@pytest.fixture
def published(program):
    return program("published")


def test_tables_of_scores_have_the_published_numbers(published):
    for document in published.DOCUMENTS:
        text = read(document)
        assert "begin -->" in text
        assert published.with_tables(document) == text, document


def test_every_page_has_its_numbers_and_a_model_of_the_package_or_says_which(published):
    models = {name: load_model(PACKAGED_MODELS / name) for name in published.SOURCES}
    hashes = [model.model_hash() for model in models.values()]
    overview = read("docs/results/experiments.md")
    pages = sorted((DOCS / "results/experiments").glob("*.md"))
    assert len(pages) >= 6
    for page in pages:
        results = json.loads(page.with_suffix(".json").read_text("utf-8"))
        is_shipped = any(published.is_made_with(results, one) for one in hashes)
        assert is_shipped or f"`{results['made']['biLM'].split()[-1]}`" in overview
        assert f"- command: {results['made']['command']}" in page.read_text("utf-8")
    for name, model in models.items():
        scores = published.card_scores(published.read_published(published.SOURCES[name]))["scores"]
        card = (PACKAGED_MODELS / name / "README.md").read_text("utf-8")
        assert list(model.training_metadata["scores"]) == list(scores)
        assert all(text.split(",")[0] in card for text in scores.values())
