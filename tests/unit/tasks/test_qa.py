"""Questions about a paragraph: reading, scoring, showing."""

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.tasks.qa import MAX_CONTEXT_WORDS, FoundAnswer, GoldAnswers, QaTask
from elmokit.text.tokenizers.simple import SimpleTokenizer

from ...builders.squad_data import RIVER, SEOUL, paragraph

TASK = QaTask()


def test_questions_are_read_with_the_words_that_cover_their_answers(squad):
    path = squad(
        paragraph(RIVER, ("Where?", "river bank", "by the"), ("When?", "1998")),
        paragraph(SEOUL, ("어디에서?", "서울")),
    )
    tokenize = SimpleTokenizer().tokenize
    for training in (True, False):
        where, when, korean = TASK.read(path, training=training, tokenize=tokenize)
        assert TASK.sentences(where)[0] == ("Where", "?")
        assert where.context_words[:7] == ("Minji", "sat", "by", "the", "river", "bank", ".")
        assert where.spans == ((4, 6), (2, 4))
        assert where.answers == ("river bank", "by the")
        assert where.context == RIVER
        assert where.context_words is when.context_words
        ((start, end),) = when.spans
        assert "".join(when.context_words[start:end]).startswith("1998")
        # an eojeol is one word, so the answer is only a part of it
        assert [korean.context_words[start:end] for start, end in korean.spans] == [("서울에서",)]
        assert TASK.labels([where, when, korean]) == []


def test_answers_without_words_are_left_out_of_training_and_kept_otherwise(squad, caplog):
    def tokenize(text):
        return text.replace("§", "").split()

    path = squad(paragraph("by law § 5", ("What?", "§"), ("Which?", "5")))
    (example,) = TASK.read(path, training=True, tokenize=tokenize)
    assert example.spans == ((2, 3),)
    assert "no_word_at_the_answer: 1" in caplog.text
    caplog.clear()
    first, second = TASK.read(path, training=False, tokenize=tokenize)
    assert (first.spans, first.answers, second.spans) == ((), ("§",), ((2, 3),))
    assert "cannot_be_answered: 1" in caplog.text


@pytest.mark.parametrize(("first", "last"), [(0, 1), (5, 9), (500, 503), (999, 1000), (300, 800)])
def test_long_contexts_are_cut_around_the_answer_in_training_only(squad, first, last):
    words = [f"w{number}" for number in range(1000)]
    context, answer = " ".join(words), " ".join(words[first:last])
    path = squad(paragraph(context, *((f"Q {number} ?", answer) for number in range(8))))
    examples = TASK.read(path, training=True, tokenize=str.split)
    begins = set()
    for example in examples:
        size = max(400, last - first)
        ((start, end),) = example.spans
        assert len(example.context_words) == len(example.offsets) == size
        assert example.context_words[start:end] == tuple(words[first:last])
        assert context[example.offsets[start][0] : example.offsets[end - 1][1]] == answer
        begins.add(example.offsets[0])
    assert examples == TASK.read(path, training=True, tokenize=str.split)
    if (first, last) == (500, 503):
        assert len(begins) > 1  # the answer does not always stand at the same place
    whole = TASK.read(path, training=False, tokenize=str.split)
    assert {example.context_words for example in whole} == {tuple(words)}


def test_a_context_past_all_limits_is_learned_from_and_counts_as_wrong(squad, caplog):
    context = "by " * MAX_CONTEXT_WORDS + "Seoul"
    path = squad(paragraph(context, ("Where?", "Seoul")))
    (example,) = TASK.read(path, training=True, tokenize=str.split)
    assert example.context_words == ("by",) * 399 + ("Seoul",)
    assert not caplog.records
    (example,) = TASK.read(path, training=False, tokenize=str.split)
    assert example.context_words == ()
    assert "cannot_be_answered: 1" in caplog.text
    with pytest.raises(InputError, match=r"10001 .*10000"):
        TASK.example_of(("Where", "?"), ("by",) * (MAX_CONTEXT_WORDS + 1))


def test_scores_follow_the_language_of_each_question(squad):
    # Hangul in the question decides, not in the answer or the context
    path = squad(
        paragraph("Seoul (서울) or the cat", ("Who ?", "the cat"), ("Which ?", "서울")),
        paragraph("부산 and 서울 or the cat", ("어디 ?", "부산", "서울"), ("누구 ?", "the cat")),
    )
    gold = [TASK.gold(one) for one in TASK.read(path, training=False, tokenize=str.split)]
    assert gold == [
        GoldAnswers(("the cat",), "squad"), GoldAnswers(("서울",), "squad"),
        GoldAnswers(("부산", "서울"), "korquad"), GoldAnswers(("the cat",), "korquad"),
    ]  # fmt: skip
    answers = ("cat sat", "서울", "서울에", "cat")
    score = TASK.score(gold, [FoundAnswer(text, 0, len(text), 0.5) for text in answers])
    # words without articles: "cat" of "cat sat" and of "cat": 2·1 / (2 + 1) = 2/3; equal: 1
    # characters: 서울 of 서울에: 2·2 / (3 + 2) = 4/5; cat of thecat: 2·3 / (3 + 6) = 2/3
    f1 = [2 / 3, 1, 4 / 5, 2 / 3]
    np.testing.assert_allclose(score.counts[:, 1], f1)
    assert (score.metric, score.value) == ("F1", pytest.approx(100 * sum(f1) / 4))
    assert score.details == {"exact match": 25}
