"""Scores in README, docs and cards are those that experiments wrote."""

import json
import re

import pytest

from elmokit.tasks.runs.run_dir import read_metadata
from elmokit.weights.locate import PACKAGED_MODELS, PACKAGED_RUNS
from elmokit.weights.model_dir import load_model

from .test_documents import DOCS, read

DOCUMENTS = ("README.md", "README.ko.md", "docs/results/experiments.md", "docs/ko/results/index.md")
TABLE = re.compile(r"<!-- scores (\w+): begin -->\n.*?\n\|[ |-]+\n(.*?)<!-- scores", re.DOTALL)
CONTROLS = ("static, as wide as elmo", "layer 0")


@pytest.fixture
def publish(program):
    return program("publish")


def published_cells(publish, name):
    """What a table of scores must say of each data set."""
    results = publish.read_published(publish.SOURCES.get(name, name))
    scores = publish.scores_of(results)
    if name not in publish.SOURCES:
        cells = {row["data"]: list(row.values())[5:] for row in scores}
        return {data: of_data for data, of_data in cells.items() if set(of_data) != {"–"}}
    by_labels = {(row["data"], row["labels"]): row for row in scores}
    controls = {row["data"]: row for row in publish.scores_of(publish.read_published("controls"))}
    cells = {}
    for row in publish.scores_of(results, table=1):
        data = row["data"]
        if (row["condition"], row["labels"]) == ("elmo", "100 %"):
            full, few = by_labels[data, "100 %"], by_labels.get((data, "10 %"))
            beside = [controls.get(data, {}).get(one, "–") for one in CONTROLS if name == "en"]
            few = f"{few['static']} → {few['elmo']}" if few else "–"
            cells[data] = [full["static"], *beside, full["elmo"], row["p (Holm)"], few]
    return cells


def test_tables_of_scores_have_the_published_numbers(publish):
    short_names = {re.search(r", (\S+) ", text)[1]: name for name, text in publish.LABELS.items()}
    tables = [table for document in DOCUMENTS for table in TABLE.findall(read(document))]
    assert len(tables) == 11
    for name, rows in tables:
        found = {}
        for row in rows.splitlines():
            label, *cells = re.split(r" \| ", row.strip("| "))
            data = short_names[re.search(r", (\S+) \(", label)[1]]
            found[data] = [re.sub(r"[*†‡§]", "", cell).strip() for cell in cells]
        assert found == published_cells(publish, name)


@pytest.mark.parametrize("page", ["docs/guides/taggers.md", "docs/ko/guides/taggers.md"])
def test_the_table_of_taggers_has_their_scores_and_sizes(page):
    rows = re.findall(r"^\| `([\w-]+)` \| .*?([\d.]+) \| ([\d.]+) \|$", read(page), re.MULTILINE)
    for name, score, megabytes in rows:
        folder = PACKAGED_RUNS / name
        size = sum(path.stat().st_size for path in folder.iterdir())
        expected = f"{read_metadata(folder)['card']['score']:.2f}", f"{size / 1e6:.1f}"
        assert (score, megabytes) == expected
    assert {name for name, *_ in rows} == {path.name for path in PACKAGED_RUNS.iterdir()}


def test_every_page_has_its_numbers_and_a_model_of_the_package_or_says_which(publish):
    models = {name: load_model(PACKAGED_MODELS / name) for name in publish.SOURCES}
    hashes = [model.model_hash() for model in models.values()]
    overview = read("docs/results/experiments.md")
    pages = sorted((DOCS / "results/experiments").glob("*.md"))
    assert len(pages) >= 6
    for page in pages:
        results = json.loads(page.with_suffix(".json").read_text("utf-8"))
        is_shipped = any(publish.is_made_with(results, one) for one in hashes)
        assert is_shipped or f"`{results['made']['biLM'].split()[-1]}`" in overview
        assert f"- command: {results['made']['command']}" in page.read_text("utf-8")
    for name, model in models.items():
        published = publish.read_published(publish.SOURCES[name])
        if not publish.is_made_with(published, model.model_hash()):
            predecessor = published["made"]["biLM"].split()[-1]
            assert predecessor in model.training_metadata["task_scores"]
            continue
        scores = publish.card_scores(published)["scores"]
        card = (PACKAGED_MODELS / name / "README.md").read_text("utf-8")
        assert list(model.training_metadata["scores"]) == list(scores)
        assert all(text.split(",")[0] in card for text in scores.values())
