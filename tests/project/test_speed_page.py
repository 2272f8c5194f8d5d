"""The speed page and the READMEs compare with the fastest alternative, and as measured."""

import re

import pytest

from .test_notebooks import ROOT

MEASURED = ROOT / "benchmarks/results"
OURS = ("elmokit fp32", "elmokit bf16", "elmokit int8")
OTHER_VECTORS = "MiniLM-L6"
NAMES = {"AllenNLP + vocab_to_cache": "AllenNLP with its vocabulary cache"}


def cells(line):
    return [cell.strip() for cell in line.strip("| \n").split("|")]


def measured(shape, batch):
    """The rows of a cell of the EPYC run, by program: the named columns."""
    page = (MEASURED / f"embed-{shape}_amd-epyc-2-cores_2026-11.md").read_text(encoding="utf-8")
    section = re.search(rf"## {shape}, {batch} sentences? a call .*?\n\n(.*?)\n\n", page, re.DOTALL)
    header, _, *rows = map(cells, section[1].splitlines())
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def fastest_rows():
    page = (ROOT / "docs/results/speed.md").read_text(encoding="utf-8")
    table = re.search(r"\| Shape, sentences per call \| Fastest.*?\n\n", page, re.DOTALL)[0]
    return [cells(line) for line in table.strip().splitlines()[2:]]


def test_the_table_has_all_cells():
    cells_of_table = [row[0] for row in fastest_rows()]
    assert cells_of_table == [
        f"{shape}, {n}" for shape in ("small", "original") for n in (1, 16, 64)
    ]


@pytest.mark.parametrize("row", fastest_rows(), ids=lambda row: row[0])
def test_ratios_are_to_the_fastest_alternative(row):
    cell, name, tokens, *ratios = row
    programs = measured(*cell.split(", "))
    others = {
        program: int(columns["tokens/s"].replace(",", ""))
        for program, columns in programs.items()
        if program not in (*OURS, OTHER_VECTORS)
    }
    fastest = max(others, key=others.get)
    assert (name, tokens) == (NAMES.get(fastest, fastest), f"{others[fastest]:,}")
    assert ratios == [f"{programs[one][f'× {fastest}']}×" for one in OURS]


@pytest.mark.parametrize("readme", ["README.md", "README.ko.md"])
def test_the_readme_names_the_fastest_alternative_and_the_version(readme):
    text = " ".join((ROOT / readme).read_text(encoding="utf-8").split())
    small = next(row for row in fastest_rows() if row[0] == "small, 64")
    assert all(ratio.rstrip("×") in text for ratio in small[3:5])
    assert small[1].split()[0] in text
    assert "4.1" in text
    assert "elmokit 0.1.0" in text
