"""What a score says of its examples for significance tests."""

import json
from typing import Any

import pytest

from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.task_run import TaskRun

from ....builders.squad_data import paragraph

ROLES = {
    "tokens": ["I", "sat", "slept"],
    "predicates": [
        {"index": 1, "tags": ["B-A0", "B-V", "O"]}, {"index": 2, "tags": ["B-A0", "O", "B-V"]},
    ],
}  # fmt: skip
PARAGRAPHS: dict[str, Any] = {
    "data": [{"title": "t", "paragraphs": [
        paragraph("a river", ("What ?", "river"), ("Which ?", "a")),
        paragraph("a bank", ("Who ?", "bank")),
    ]}],
}  # fmt: skip
DOCUMENT = (
    "#begin document ({0}); part {1}\n{0}\t{1}\t0\tMinji\t(1)\n{0}\t{1}\t1\tshe\t(1)\n\n"
    "#end document\n"
)
CASES = {
    "ner": ("txt", "Minji B-PER\n\nsat O\n\n", [0, 1]),
    "sentiment": ("tsv", "text\tlabel\nby the river\tgood\nI sat\tbad\n", [0, 1]),
    "nli": ("tsv", "premise\thypothesis\tlabel\na\tb\tyes\nc\td\tno\na\te\tno\n", [0, 1, 0]),
    "srl": ("jsonl", f"{json.dumps(ROLES)}\n" + json.dumps(ROLES).replace("sat", "ran"),
            [0, 0, 1, 1]),
    "qa": ("json", json.dumps(PARAGRAPHS), [0, 0, 1]),
    "coref": ("conll", DOCUMENT.format("a", 0) + DOCUMENT.format("a", 1) + DOCUMENT.format("b", 0),
              [0, 0, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_examples_of_one_text_are_one_sampling_unit(name, tmp_path):
    ending, text, units = CASES[name]
    path = tmp_path / f"dev.{ending}"
    path.write_text(text, encoding="utf-8")
    task = find_task(name)
    examples = task.read(path, training=False, tokenize=str.split)
    assert task.number_sampling_units(examples).tolist() == units


def test_a_score_has_the_unit_of_each_example(ner_run, tmp_path):
    path = tmp_path / "dev.txt"
    path.write_text("Minji B-PER\n\nsat O\n\nMinji B-PER\n\n", encoding="utf-8")
    score = TaskRun.load(ner_run).evaluate(path)
    assert score.sampling_units.tolist() == [0, 1, 0]  # the first and the third are the same text
    assert len(score.counts) == 3
