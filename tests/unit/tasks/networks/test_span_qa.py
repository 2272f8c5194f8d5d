"""The network that finds answers in a paragraph."""

import itertools
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.networks.span_qa import SpanQA, best_answers
from elmokit.tasks.qa import FoundAnswer, QaTask
from elmokit.tasks.runs.examples import Examples, predict

from ....builders.squad_data import paragraph

TASK = QaTask()
SETTINGS = InputSettings(dropout=0.0, layer_l2=1e-3).resolved(TASK.paper_inputs, with_static=True)
ASKED = [
    TASK.example_of(tuple(question.split()), tuple(context.split()))
    for question, context in (
        ("Who sat ?", "Minji sat by the river bank and it rained all day"),
        ("어디 에서 탔 나 ?", "서울 에서 배 를 탔다"),
        ("", "nobody asked"),
        ("Who ?", ""),
        ("Who was it then ?", "Kim"),
        ("", ""),
    )
]


def test_an_answer_is_the_same_alone_and_in_a_batch(build, keep):
    network = build(SpanQA, TASK, SETTINGS)
    together = [answer for answer, _ in predict(network, Examples(TASK, ASKED, keep))]
    for example, answer in zip(ASKED, together, strict=True):
        ((alone, _),) = predict(network, Examples(TASK, [example], keep))
        assert (alone.text, alone.start, alone.end) == (answer.text, answer.start, answer.end)
        assert alone.probability == pytest.approx(answer.probability, rel=1e-4)
        assert answer.text == example.context[answer.start : answer.end]
        assert bool(answer.text) == bool(example.context)
    assert together[3] == together[5] == FoundAnswer("", 0, 0, 0.0)
    only = together[4]  # there is no other
    assert (only.text, only.probability) == ("Kim", pytest.approx(1))
    json.dumps([TASK.as_json(*pair) for pair in zip(ASKED, together, strict=True)], allow_nan=False)


def test_the_loss_is_that_of_the_first_and_last_word_of_the_first_answer(build, keep, squad):
    network = build(SpanQA, TASK, SETTINGS)
    network.eval()
    path = squad(paragraph("a b c d", ("One ?", "b c", "d")))
    examples = TASK.read(path, training=True, tokenize=str.split)
    assert examples[0].spans == ((1, 3), (3, 4))
    batches = Examples(TASK, examples, keep).batches(network, examples)
    start_log_probs, end_log_probs = network._log_probs(*batches)
    expected = -(start_log_probs[0, 1] + end_log_probs[0, 2])
    torch.testing.assert_close(network.loss(batches, examples), expected)


@given(
    seed=st.integers(0, 10_000),
    length=st.integers(1, 9),
    max_length=st.integers(1, 12),
    real=st.floats(0, 1),
)
def test_the_best_span_equals_a_loop_over_spans(seed, length, max_length, real):
    generator = torch.Generator().manual_seed(seed)
    first, last = torch.randn(2, 3, length, generator=generator).log_softmax(dim=2)
    mask = torch.rand(3, length, generator=generator) < real
    starts, ends, scores = best_answers(first, last, mask, max_length=max_length)
    for row in range(3):
        own = {
            (start, end): (first[row, start] + last[row, end - 1]).item()
            for start, end in itertools.combinations(range(length + 1), 2)
            if end - start <= max_length and mask[row, start] and mask[row, end - 1]
        }
        expected = max(own, key=own.get, default=(0, 0))
        assert (starts[row].item(), ends[row].item()) == expected
        assert (scores[row].item() == -torch.inf) == (not own)
