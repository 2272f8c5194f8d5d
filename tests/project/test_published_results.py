"""What README and docs say of the experiments is what the experiments said."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recipe():
    path = ROOT / "recipes/publish_results.py"
    spec = importlib.util.spec_from_file_location("publish_results", path)
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    return recipe


@pytest.mark.parametrize("document", ["README.md", "README.ko.md", "docs/results/experiments.md"])
def test_tables_have_the_published_numbers(recipe, document):
    assert recipe.with_scores(document) == (ROOT / document).read_text(encoding="utf-8")


def test_every_page_has_its_numbers_and_a_model_of_the_package(recipe):
    from elmokit.weights.locate import PACKAGED_MODELS
    from elmokit.weights.model_dir import load_model

    shipped = {load_model(PACKAGED_MODELS / name).model_hash()[:12] for name in ("en", "ko")}
    pages = sorted(recipe.PAGES.glob("*.md"))
    assert len(pages) >= 6
    for page in pages:
        made = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))["made"]
        assert made["biLM"].split()[-1] in shipped
        assert f"- command: {made['command']}" in page.read_text(encoding="utf-8")


def test_a_table_shows_what_is_there_and_what_is_not(recipe):
    results = {
        "tables": [
            {"rows": [
                ["ner", "ner-en-uner-ewt", "100 %", "F1", "9", "60.00 ± 1.00", "59.00 ± 0.50"],
                ["ner", "ner-en-uner-ewt", "10 %", "F1", "1", "40.00", "50.00"],
                ["nli", "nli-snli-sample", "100 %", "accuracy", "9", "50.00", "–"],
            ]},
            {"rows": [
                ["ner", "ner-en-uner-ewt", "100 %", "elmo", "-1.00", "-2.5 %", "0.300"],
                ["ner", "ner-en-uner-ewt", "10 %", "elmo", "+10.00", "16.7 %", "< 0.001"],
            ]},
        ]
    }  # fmt: skip
    header, _, ner, nli = recipe.scores_table(results, "en", "ko").splitlines()
    assert header.startswith("| 영어 | 정적 벡터 |")
    assert ner == (
        "| 개체명, UNER-EWT (F1) | **60.00 ± 1.00** | 59.00 ± 0.50 | -2.5 % | 0.300 "
        "| 40.00 → 50.00 | 16.7 % |"
    )
    assert nli == "| 함의, SNLI (정확도) | 50.00 | – | – | – | – | – |"


def test_pages_with_places_of_a_machine_are_refused(recipe, tmp_path, monkeypatch):
    from elmokit.errors import FormatError

    monkeypatch.setattr(recipe, "PAGES", tmp_path / "pages")
    (tmp_path / "pages").mkdir()
    (tmp_path / "table1").mkdir()
    (tmp_path / "table1/results.json").write_text("{}", encoding="utf-8")
    page = tmp_path / "table1/table.md"
    page.write_text("# Table 1\n\n- command: `x --data data`, 1/2, and/or\n", encoding="utf-8")
    assert recipe.publish_pages(tmp_path) == ["table1"]
    assert (tmp_path / "pages/table1.json").read_text(encoding="utf-8") == "{}"
    page.write_text("# Table 1\n\n- command: `x --data /home/me/data`\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"table1\.md has an absolute path \(.*/home/me"):
        recipe.publish_pages(tmp_path)
