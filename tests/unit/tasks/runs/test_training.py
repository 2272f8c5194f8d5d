import json
import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from elmokit.errors import InputError
from elmokit.tasks.coref import CorefTask
from elmokit.tasks.formats.conll import TaggedSentence
from elmokit.tasks.networks.encoder import TaskModel
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.examples import (
    Examples,
    check_labels,
    choose_examples,
    predict,
    training_batches,
)
from elmokit.tasks.runs.training import TaskTrainConfig, TaskTraining
from elmokit.tasks.tagging import PosTask
from elmokit.tasks.task import TaskScore, no_probs

from ....builders.squad_data import paragraph, squad_text
from ....builders.task_files import document


def examples(lengths):
    made = [TaggedSentence(tokens=("w",) * n, tags=("X",) * n) for n in lengths]
    return Examples(PosTask(), made, None)


def test_an_epoch_has_every_example_once_in_another_order():
    def batches(lengths, seed):
        return training_batches(examples(lengths), range(len(lengths)), 7, seed=seed)

    lengths = [3, 1, 4, 1, 5, 9, 2, 6] * 10
    first, second = batches(lengths, "0 0"), batches(lengths, "0 1")
    assert first != second
    assert first == batches(lengths, "0 0")
    for epoch in (first, second):
        assert sorted(index for batch in epoch for index in batch) == list(range(80))
        assert all(1 <= len(batch) <= 7 for batch in epoch)
    same_length = batches(range(1, 141), "0 0")
    assert all(max(batch) - min(batch) == 6 for batch in same_length)


def test_a_smaller_share_is_part_of_a_larger_one_and_empty_sentences_are_left_out():
    training = examples([0, *[2] * 99])
    small, large, every = (
        choose_examples(training.task, training.examples, share=share, seed=0)
        for share in (0.1, 0.5, 1.0)
    )
    assert (len(small), len(large)) == (10, 50)
    assert set(small) < set(large)
    assert 0 not in every


def test_prediction_batches_are_bounded_in_words():
    held = examples([1, 5000, 3000, 10, 10])
    batches = []

    def answer(_, part):
        batches.append([len(example.tokens) for example in part])
        return [(size, no_probs) for size in batches[-1]]

    model = SimpleNamespace(make_batch=lambda sentences, layers: sentences, answer=answer)
    assert [answer for answer, _ in predict(model, held)] == [1, 5000, 3000, 10, 10]
    assert batches == [[1, 10, 10], [3000], [5000]]
    # of documents, the sentences: padded to 2 · 2000, 5000, 2 · 2000, 3000 words
    task = CorefTask()
    documents = [
        task.example_of(*(("w",) * length for length in lengths))
        for lengths in ([2000, 1000, 5000], [], [1, 2000, 3000])
    ]
    held = Examples(task, documents, None)
    assert [held.length(index) for index in range(3)] == [8000, 0, 5001]
    sizes = [[len(words) for words in batch] for batch in held.batches(model, documents)]
    assert sizes == [[2000, 1000], [5000], [1, 2000], [3000]]
    assert held.batches(model, documents[1:2]) == []


@pytest.mark.parametrize(
    ("task", "known", "tags", "unknown"),
    [
        ("pos", ["X", "Z"], ("X", "Y"), r"\(Y\)"),
        ("ner", ["O", "U-X"], ("B-X-Y", "L-X-Y", "O", "U-X", "U-long-type"), r"\(X-Y, long-type\)"),
    ],
)
def test_labels_that_the_training_set_lacks_are_told_and_only_such_labels_refused(
    task, known, tags, unknown, caplog
):
    task, path = find_task(task), Path(f"{task}.dev")
    sentence = TaggedSentence(tokens=("a",) * len(tags), tags=tags)
    check_labels(path, task, known, [sentence])
    (message,) = caplog.messages
    assert re.search(unknown, message)
    with pytest.raises(InputError, match=str(path)):
        check_labels(path, task, ["O"], [sentence])


class Counter(TaskModel):
    """Its only weight counts the updates."""

    def __init__(self):
        torch.nn.Module.__init__(self)
        self.build((), 0.0)

    def build(self, hidden_dims, dropout):
        self.updates = torch.nn.Parameter(torch.zeros(()))

    def make_batch(self, sentences, layers):
        return None

    def loss(self, batches, examples):
        return self.updates * 1.0

    def predict(self, batches, examples):
        raise AssertionError("scores are given")


def run_scripted(monkeypatch, scores, **settings):
    """Train with dev scores that are given; return the model and the reports."""
    script = map(partial(TaskScore, "accuracy"), scores)
    monkeypatch.setattr("elmokit.tasks.runs.training.score_model", lambda *_: next(script))
    model = Counter()
    config = TaskTrainConfig(epochs=6, patience=2, learning_rate=1.0, **settings)
    held = examples([1, 1, 1])
    return model, list(TaskTraining(model, held, held, config).run())


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([10.0, 30.0, 20.0, 30.0, 99.0], [1, 1, 0, 0]),
        # epochs before the first score above 0 do not count
        ([0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]),
        ([0, 0, 0, 0.4, 0.2, 0.2], [1, 0, 0, 1, 0, 0]),
        ([0, 0.4, 0.2, 0.2, 9, 9], [1, 1, 0, 0]),
    ],
)
def test_the_best_epoch_remains_and_patience_ends_the_training(monkeypatch, scores, best):
    model, reports = run_scripted(monkeypatch, scores)
    assert [report.is_best for report in reports] == best
    # Adam with a constant gradient moves by the rate at each update up to the best one
    last = max(number for number, is_best in enumerate(best, 1) if is_best)
    assert float(model.updates.detach()) == pytest.approx(-last, abs=1e-4)
    assert not model.training


@pytest.mark.parametrize(("schedule", "moved"), [("constant", 6.0), ("cosine", 2.77)])
def test_the_rate_falls_over_all_epochs_if_it_is_to(monkeypatch, schedule, moved):
    """By hand: 0.001, 0.965, 0.806, 0.564, 0.311, 0.120, and never more than the rate itself."""
    model, reports = run_scripted(monkeypatch, range(6), schedule=schedule)
    assert len(reports) == 6
    assert float(model.updates.detach()) == pytest.approx(-moved, abs=0.01)


def test_what_is_not_finite_names_the_settings_of_a_task():
    class Broken(Counter):
        def loss(self, batches, examples):
            return self.updates * float("nan")

    held = examples([1])
    message = r"loss .*train\.learning_rate.*train\.clip_norm.*epoch 1\."
    with pytest.raises(FloatingPointError, match=message):
        list(TaskTraining(Broken(), held, held, TaskTrainConfig()).run())


PREDICATES = [{"index": 0, "tags": ["B-V", "O"]}, {"index": 1, "tags": ["O", "B-V"]}]
ROLES = json.dumps({"tokens": ["sat", "slept"], "predicates": PREDICATES})
RIVER = paragraph("a river", ("What ?", "river"), ("Which ?", "a"))
PARTS = [
    document(["a (1)", "b (1)"], name=name, part=part)
    for name, part in (("a", 0), ("a", 1), ("b", 0))
]
CASES = {
    "ner": ("txt", "Minji B-PER\n\nsat O\n\n", [0, 1]),
    "sentiment": ("tsv", "text\tlabel\nby the river\tgood\nI sat\tbad\n", [0, 1]),
    "nli": ("tsv", "premise\thypothesis\tlabel\na\tb\tyes\nc\td\tno\na\te\tno\n", [0, 1, 0]),
    "srl": ("jsonl", f"{ROLES}\n{ROLES.replace('sat', 'ran')}\n", [0, 0, 1, 1]),
    "qa": ("json", squad_text(RIVER, paragraph("a", ("Who ?", "a"))), [0, 0, 1]),
    "coref": ("conll", "".join(PARTS), [0, 0, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_examples_of_one_text_are_one_sampling_unit(name, write):
    ending, text, units = CASES[name]
    task = find_task(name)
    path = write(text, name=f"dev.{ending}")
    examples = task.read(path, training=False, tokenize=str.split)
    assert task.number_sampling_units(examples).tolist() == units
