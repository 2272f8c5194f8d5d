"""What of a data set is in a corpus, against a search by hand."""

import importlib
import json
import lzma
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONG = "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all today."
"""87 characters: a probe of 60, and a rest."""
KNOWN, PARTLY, NEW = "Known text, whole.", f"{LONG[:70]} but otherwise", "Nobody has seen this."


@pytest.fixture
def overlap(pytestconfig):
    folder = str(pytestconfig.rootpath / "benchmarks")
    sys.path.insert(0, folder)
    yield importlib.import_module("overlap")
    sys.path.remove(folder)
    for name in ("overlap", "common"):
        sys.modules.pop(name, None)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt.xz"
    first, second = LONG[:40].rsplit(" ", 1)
    lines = ["Other words.", f"before {first}", f"{second}{LONG[40:]}", f"So: {KNOWN} Yes.", "good"]
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return str(path)


def pairs(*premises):
    return "".join(
        json.dumps({"premise": text, "hypothesis": KNOWN, "label": "neutral"}) + "\n"
        for text in premises
    )


def test_texts_are_found_by_their_pieces_across_lines_and_however_written(
    overlap, corpus, tmp_path
):
    data, rest = tmp_path / "dev.jsonl", tmp_path / "rest.jsonl"
    premises = [LONG, "Known  text, whole.", PARTLY, NEW, NEW, KNOWN.upper()]
    data.write_text(pairs(*premises), encoding="utf-8")
    found = overlap.measure([corpus], "nli", data, rest=rest)
    assert (found["examples"], found["examples_found"]) == (6, 3)
    assert (found["texts"], found["texts_found"]) == (5, 3)
    assert (found["short_texts"], found["short_texts_found"]) == (3, 1)
    # LONG and PARTLY begin alike: one probe
    assert (found["probes"], found["probes_found"]) == (4, 2)
    assert found["corpus"]["lines"] == 5
    assert rest.read_text(encoding="utf-8") == pairs(NEW, NEW, KNOWN.upper())


def test_very_short_texts_must_be_whole_lines(overlap, corpus, tmp_path):
    data = tmp_path / "train.tsv"
    data.write_text("id\tdocument\tlabel\n1\tgood\t1\n2\twords\t0\n3\t\t0\n", encoding="utf-8")
    rest = tmp_path / "rest.tsv"
    found = overlap.measure([corpus], "sentiment", data, rest=rest)
    assert (found["examples"], found["examples_found"], found["probes"]) == (3, 1, 2)
    assert rest.read_text(encoding="utf-8") == "id\tdocument\tlabel\n2\twords\t0\n3\t\t0\n"


def test_the_search_finds_what_a_search_by_hand_finds(overlap):
    import random

    draw = random.Random(0)
    lines = ["".join(draw.choices("ab ", k=draw.randrange(40))).strip() for _ in range(200)]
    lines = [" ".join(line.split()) for line in lines if line.strip()]
    text = " ".join(lines)
    probes = {
        " ".join("".join(draw.choices("ab ", k=draw.randrange(1, 22))).split()) for _ in range(400)
    }
    starts = [draw.randrange(len(text) - 30) for _ in range(100)]
    probes |= {text[start : start + draw.randrange(12, 30)].strip() for start in starts}
    probes.discard("")
    search = overlap.ProbeSearch(probes)
    search.read(lines)
    shortest = overlap.MIN_CHARACTERS
    expected = {p for p in probes if (p in text if len(p) >= shortest else p in lines)}
    assert search.found == expected
    assert len(expected) > 50
