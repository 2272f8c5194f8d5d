"""Scores and speeds in README, docs and cards are those that experiments and benchmarks wrote."""

import json
import re

import pytest

from elmokit.weights.locate import PACKAGED_MODELS
from elmokit.weights.model_dir import load_model

from .test_documents import DOCS, read

OURS = ("elmokit fp32", "elmokit bf16", "elmokit int8")


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


def cells(line):
    return [cell.strip() for cell in line.strip("| \n").split("|")]


def measured(shape, batch):
    """The rows of a cell of the EPYC run, by program: the named columns."""
    page = read(f"benchmarks/results/embed-{shape}_amd-epyc-2-cores_2026-11.md")
    section = re.search(rf"## {shape}, {batch} sentences? a call .*?\n\n(.*?)\n\n", page, re.DOTALL)
    header, _, *rows = map(cells, section[1].splitlines())
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def test_speeds_are_compared_with_the_fastest_alternative_as_measured():
    table = re.search(
        r"\| Shape, sentences per call \| Fastest.*?\n\n", read("docs/results/speed.md"), re.DOTALL
    )
    rows = [cells(line) for line in table[0].strip().splitlines()[2:]]
    assert [row[0] for row in rows] == [
        f"{shape}, {n}" for shape in ("small", "original") for n in (1, 16, 64)
    ]
    for cell, name, tokens, *ratios in rows:
        programs = measured(*cell.split(", "))
        others = {
            program: int(columns["tokens/s"].replace(",", ""))
            for program, columns in programs.items()
            if program not in (*OURS, "MiniLM-L6")  # whose vectors are others
        }
        fastest = max(others, key=others.get)
        said = fastest.replace("+ vocab_to_cache", "with its vocabulary cache")
        assert (name, tokens) == (said, f"{others[fastest]:,}")
        assert ratios == [f"{programs[one][f'× {fastest}']}×" for one in OURS]
    small = next(row for row in rows if row[0] == "small, 64")
    for readme in ("README.md", "README.ko.md"):
        text = " ".join(read(readme).split())
        assert all(ratio.rstrip("×") in text for ratio in small[3:5])
        assert small[1].split()[0] in text
