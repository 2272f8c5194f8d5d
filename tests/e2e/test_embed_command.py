"""`elmokit embed` as users type it, killed and resumed."""

import json
import signal

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder

from ..builders.command_line import elmokit, start_elmokit
from ..builders.embedding_models import random_sentences, read_hdf5, toy_model

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("embed") / "model"
    toy_model(cell_dim=256, projection_dim=64).save(path)
    return path


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("embed") / "text.txt"
    lines = [" ".join(s) for s in random_sentences(400, longest=60)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def embed(*arguments, expect=0):
    return elmokit("embed", *arguments, expect=expect)


def test_json_report_and_vectors(model, tmp_path):
    (tmp_path / "t.txt").write_text("I sat by the bank .\n\n배 를 타고 갔다\n", encoding="utf-8")
    done = embed(tmp_path / "t.txt", "-o", tmp_path / "o.h5", "--model", model, "--json")
    report = json.loads(done.stdout)
    assert (report["sentences"], report["words"]) == (3, 10)
    assert report["words_per_second"] > 0
    assert report["metadata"]["state"] == "reset"
    expected = Embedder.load(model).embed(["I sat by the bank .", "", "배 를 타고 갔다"])
    got = read_hdf5(tmp_path / "o.h5")
    assert sorted(got) == [0, 1, 2]
    for key, array in got.items():
        assert array.shape == expected[key].shape
        assert np.abs(array - expected[key]).max(initial=0) <= 2e-6


KILL_POINTS = {
    "before the first part is whole": "event == 'os.rename' and 'part-' in given[0]",
    "after three parts": (
        "event == 'os.rename' and 'part-' in given[0] and len(list(parts.glob('part-*'))) == 3"
    ),
    "in the final writing": (
        "event == 'open' and 'part-' in given[0] and 'part-000000000000-' not in given[0]"
        " and any(output.parent.glob('.out.h5.*.partial/out.h5'))"
    ),
    "before the parts are removed": (
        "event == 'os.remove' and 'part-' in given[0] and output.exists()"
    ),
}
"""What the process is about to do when it is killed: an audit event of Python, with its paths."""

KILLED = """
import os, signal, sys
from pathlib import Path
from elmokit.embed import job
job.PART_BYTES = 500_000
output = Path(sys.argv[sys.argv.index("-o") + 1])
parts = output.with_name(output.name + ".parts")
def hook(event, given):
    given = [str(one) for one in given]
    if {condition}:
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
"""


def test_killed_at_the_worst_moments_and_resumed(model, text, tmp_path):
    whole, output = tmp_path / "whole.h5", tmp_path / "out.h5"
    embed(text, "-o", whole, "-m", model)
    arguments = ("embed", text, "-o", output, "-m", model, "--resume")
    num_parts = []
    for condition in KILL_POINTS.values():
        assert not output.exists()
        process = start_elmokit(*arguments, before=KILLED.format(condition=condition))
        assert process.wait() == -signal.SIGKILL
        num_parts.append(len(list((tmp_path / "out.h5.parts").glob("part-*"))))
    assert num_parts[:2] == [0, 3]
    assert num_parts[2] == num_parts[3] > 5
    assert output.exists()
    report = json.loads(elmokit(*arguments, "--json").stdout)
    assert (report["sentences"], report["resumed_sentences"]) == (400, 400)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.h5", "whole.h5"]
    expected, got = read_hdf5(whole), read_hdf5(output)
    assert sorted(got) == sorted(expected) == list(range(400))
    for key, array in expected.items():
        np.testing.assert_array_equal(got[key], array)
