"""The card of a task run."""

import pytest

from elmokit.tasks.runs.card import run_card

METADATA = {
    "config": {"task": "ner", "units": "words", "hidden_dims": [8]},
    "bilm": {"path": "xx", "model_hash": "0123456789abcdef"},
    "weights": "int8",
}
CARD = {
    "name": "ner-xx", "language": "xx", "license": "CC0", "example": '"Hi", said Minji.',
    "limits": "few", "label_meanings": {"PER": "people | animals"},
    "scored": "The dev set: 50.0.",
    "scores": {"PER": {"precision": 100.0, "recall": 33.333, "f1": 50.0, "gold": 3000}},
}  # fmt: skip


def card(**facts):
    made = METADATA | {"card": facts} if facts else METADATA
    return run_card(made, tokenizer="simple 1", num_parameters=12345)


def test_it_says_what_a_run_is_and_what_it_is_worth():
    text = card(**CARD)
    head, body = text.removeprefix("---\n").split("---\n", 1)
    assert head.splitlines()[2:] == ['language: "xx"', 'license: "CC0"']
    assert "| License | CC0 |" in body
    assert "`xx`, hash `0123456789abcdef`" in body
    assert "12,345 parameters" in body
    assert "- limits: few" in body
    assert r"| PER | people \| animals | 100.00 | 33.33 | 50.00 | 3,000 |" in body
    assert """echo '"Hi", said Minji.' | elmokit predict ner-xx -""" in body
    assert r"""predict_json(["\"Hi\", said Minji."])""" in body


@pytest.mark.parametrize(
    ("task", "tag", "network"),
    [
        ("ner", "token-classification", "biLSTM"), ("srl", "token-classification", "highway LSTM"),
        ("nli", "text-classification", "biLSTM"), ("qa", "question-answering", "biGRU with attent"),
        ("coref", "coreference-resolution", "biLSTM"),
    ],
)  # fmt: skip
def test_each_task_has_its_tag_and_network(task, tag, network):
    made = METADATA | {"config": METADATA["config"] | {"task": task}}
    text = run_card(made, tokenizer="simple 1", num_parameters=1)
    assert f"tags: [elmo, {tag}]" in text
    assert f"| Network | {network}" in text


def test_a_run_without_facts_says_that_none_are_stated():
    text = card()
    assert text.count("not stated") == 2
    assert "Not stated." in text
    assert "## Scores" not in text
    assert "predict path/to/this/directory -" in text
