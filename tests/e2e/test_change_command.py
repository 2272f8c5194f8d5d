"""`elmokit change` and `distil`, as a user types them."""

import csv
import json

import pytest

from elmokit.vectors.vector_files import read_vectors

from ..builders.command_line import elmokit

pytestmark = pytest.mark.e2e
pytest.importorskip("sklearn", reason="extra `sklearn` is not installed")


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Two texts in which a plane is a tool and then a machine."""
    folder = tmp_path_factory.mktemp("change")
    places = ("river", "town", "house", "road", "field")
    old = [f"the carpenter used a plane to smooth the wood of the {place} ." for place in places]
    new = [f"the plane landed near the {place} after a long flight ." for place in places]
    for name, uses in (("old", old), ("new", new)):
        lines = [line for use in uses for line in (use, f"we walked by the {use.split()[-2]} .")]
        (folder / f"{name}.txt").write_text("\n".join(lines * 2) + "\n", encoding="utf-8")
    return folder / "old.txt", folder / "new.txt"


def test_change_writes_table_and_plot(corpora, tmp_path):
    pytest.importorskip("matplotlib", reason="extra `plots` is not installed")
    table, plot = tmp_path / "words.tsv", tmp_path / "words.png"
    command = ("change", *corpora, "--min-count", 4, "--rounds", 99)
    shown = elmokit(*command, "-o", table, "--plot", plot, "--examples", 1).stdout
    assert "the carpenter used a plane" in shown
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, dialect="excel-tab"))
    plane = next(row for row in rows if row["word"] == "plane")
    assert (plane["units_a"], plane["units_b"]) == ("10", "10")
    assert 1 / 1000 < float(plane["p_apd"]) < 0.01
    assert "carpenter" in plane["a_1"]
    assert "landed" in plane["b_1"]
    assert plot.read_bytes()[:4] == b"\x89PNG"
    report = json.loads(elmokit(*command, "--word", "plane", "--json").stdout)
    assert [one["word"] for one in report["words"]] == ["plane"]
    assert 1 / 1000 < report["words"][0]["q"]["apd"] <= 0.01


def test_distil_writes_vectors_that_other_commands_read(corpora, tmp_path):
    table = tmp_path / "table.vec"
    done = elmokit("distil", "en", corpora[0], "-o", table, "--min-count", 2, "--json")
    report, vectors = json.loads(done.stdout), read_vectors(table)
    assert report["words"] == len(vectors.words) > 5
    assert vectors.dim == report["dim"] == 384
    elmokit("distil", "en", corpora[0], "-o", table, "--min-count", 2, expect=2)  # exists
    refused = elmokit(
        "distil", "en", corpora[0], "-o", tmp_path / "t.txt", "--layers", "all", expect=2
    )
    assert "all" in refused.stderr
