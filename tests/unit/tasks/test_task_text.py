"""The text of a task's data: the sentences that its models read."""

import json

import pytest

from elmokit.errors import InputError
from elmokit.tasks.task_text import TaskText

from ...builders.task_models import toy_model

PAIRS = [("I sat", "I slept"), ("I sat", "I woke"), ("by the river", "I sat")]


@pytest.fixture
def model(tmp_path):
    toy_model().save(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.fixture
def pairs(tmp_path):
    (tmp_path / "data").mkdir()
    rows = [{"premise": a, "hypothesis": b, "label": "yes"} for a, b in PAIRS]
    for split in ("train", "dev"):
        path = tmp_path / "data" / f"{split}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path / "data"


def test_sentences_come_in_order(model, pairs):
    text = TaskText.of_model("nli", model)
    (path,) = text.files([pairs], "train")
    assert path == pairs / "train.jsonl"
    assert list(text.read(path)) == [
        ("I", "sat"), ("I", "slept"), ("I", "sat"), ("I", "woke"), ("by", "the", "river"),
        ("I", "sat"),
    ]  # fmt: skip
    assert text.name == "nli, words"


def test_morphemes_are_read_if_asked_for(model, tmp_path):
    path = tmp_path / "ko.conllu"
    path.write_text("1\t나는\t나+는\tPRON\tnp+jx\t_\t0\t_\t_\t_\n", encoding="utf-8")
    assert list(TaskText.of_model("pos", model, units="morphemes").read(path)) == [("나", "는")]
    with pytest.raises(InputError, match=r"units='morphemes'.* nli"):
        TaskText.of_model("nli", model, units="morphemes")
