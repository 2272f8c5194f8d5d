"""Models and names of the page."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from elmokit.web.page.catalog import MADE_FILES, ExploredModel, catalog, distinct_names

from ....builders.training_models import toy_model


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("x y", "x y"), ("x x x", "x x-2 x-3"), ("x x x-1", "x x-2 x-1"), 
        ("x x x-2", "x x-2 x-2-2"),
        ("x-2 x x", "x-2 x x-3"),
    ],
)  # fmt: skip
def test_no_two_have_one_name(names, expected):
    assert distinct_names(names.split()) == expected.split()


@pytest.mark.parametrize(
    ("number", "label"),
    [(0, None), (1, "0.txt"), (3, "0.txt, 1.txt, 2.txt"), (2000, "0.txt … 1999.txt (2,000)")],
)
def test_a_corpus_of_many_files_has_a_short_label(number, label):
    corpus = [Path(f"wiki/{i}.txt") for i in range(number)]
    assert catalog([], served=True, corpus=corpus)["corpus"] == label


def test_a_file_is_made_once_for_all_who_ask_at_the_same_time(tmp_path, monkeypatch):
    made, all_ask = [], threading.Barrier(4)

    def make(model):
        made.append(model)
        time.sleep(0.05)
        return b"made"

    def ask(_):
        all_ask.wait(20)
        return explored.made_file("warm.safetensors")

    monkeypatch.setitem(MADE_FILES, "warm.safetensors", make)
    explored = ExploredModel("toy", tmp_path, toy_model())
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [b"made"] * 4
    assert len(made) == 1
