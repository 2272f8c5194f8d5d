"""The tables of scores in README and docs are those that the experiments wrote."""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes"


@pytest.fixture(scope="module")
def recipe():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(RECIPES)
        yield importlib.import_module("publish_results")
    for name in ("publish_results", "published_scores"):
        sys.modules.pop(name)


@pytest.mark.parametrize(
    "document",
    ["README.md", "README.ko.md", "docs/results/experiments.md", "docs/ko/results/index.md"],
)
def test_tables_have_the_published_numbers(recipe, document):
    assert recipe.with_scores(document) == (ROOT / document).read_text(encoding="utf-8")


def test_every_page_has_its_numbers_and_a_model_of_the_package_or_says_which(recipe):
    from published_scores import is_made_with, scored_hash

    from elmokit.experiments.definitions import find_experiment

    shipped = {language: recipe.shipped_hash(language) for language in recipe.SOURCES}
    overview = (ROOT / "docs/results/experiments.md").read_text(encoding="utf-8")
    pages = sorted(recipe.PAGES.glob("*.md"))
    assert len(pages) >= 6
    for page in pages:
        results = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
        assert (
            is_made_with(results, shipped[find_experiment(results["experiment"]).language])
            or f"`{scored_hash(results)}`" in overview
        )
        assert f"- command: {results['made']['command']}" in page.read_text(encoding="utf-8")


@pytest.fixture
def published(recipe, tmp_path, monkeypatch):
    """A folder of experiments, and where its pages go."""
    monkeypatch.setattr(recipe, "PAGES", tmp_path / "pages")
    (tmp_path / "experiments/figure1").mkdir(parents=True)
    return tmp_path / "experiments", tmp_path / "pages"


def test_pages_are_copied_with_their_picture(recipe, published):
    folder, pages = published
    (folder / "figure1/results.json").write_text("{}", encoding="utf-8")
    (folder / "figure1/table.md").write_text("# Figure 1: a\n\n1/2 and /or\n", encoding="utf-8")
    (folder / "figure1/plot.png").write_bytes(b"picture")
    assert recipe.publish_pages(folder) == ["figure1"]
    page = (pages / "figure1.md").read_text(encoding="utf-8")
    assert page == "# Figure 1: a\n\n![Figure 1: a](figure1.png)\n\n1/2 and /or\n"
    assert (pages / "figure1.png").read_bytes() == b"picture"
    assert (pages / "figure1.json").read_text(encoding="utf-8") == "{}"
    (folder / "figure1/plot.png").unlink()
    recipe.publish_pages(folder)
    assert sorted(path.name for path in pages.iterdir()) == ["figure1.json", "figure1.md"]


def test_a_variant_of_an_experiment_has_a_page_and_a_title_of_its_own(recipe, published):
    folder, pages = published
    (folder / "figure1").rename(folder / "table1_finetuned")
    (folder / "table1_finetuned/results.json").write_text("{}", encoding="utf-8")
    (folder / "table1_finetuned/table.md").write_text("# Table 1: a\n\n| b |\n", encoding="utf-8")
    assert recipe.publish_pages(folder) == ["table1_finetuned"]
    page = (pages / "table1_finetuned.md").read_text(encoding="utf-8")
    assert page == "# Table 1: a, with a biLM fine-tuned on the text of the task\n\n| b |\n"


@pytest.mark.parametrize("place", [" /data/me", "'~/data", "(/a/x)", "[/b/c.txt]"])
def test_pages_with_places_of_a_machine_are_refused_before_any_is_copied(recipe, published, place):
    from elmokit.errors import FormatError

    folder, pages = published
    (folder / "table1").mkdir()
    for name, text in (("table1", ""), ("figure1", f"- command: x {place}")):
        (folder / name / "results.json").write_text("{}", encoding="utf-8")
        (folder / name / "table.md").write_text(f"# T\n{text}\n", encoding="utf-8")
    with pytest.raises(FormatError, match=rf"figure1\.md .*{re.escape(place[1:])}"):
        recipe.publish_pages(folder)
    assert not pages.exists()


def test_a_folder_without_experiments_is_told(recipe, published):
    with pytest.raises(FileNotFoundError, match=r"/experiments .*table1, table2.*korean"):
        recipe.publish_pages(published[0])
