"""Coreference as a task: reading, windows, scores, output."""

import random

import pytest

from elmokit.errors import InputError
from elmokit.tasks.coref import MAX_TRAINING_SENTENCES, CorefTask
from elmokit.tasks.formats.conll import CorefDocument
from elmokit.text.tokenizers.protocol import WhitespaceTokenizer
from elmokit.text.tokenizers.simple import SimpleTokenizer

from ...builders.task_files import document

TASK = CorefTask()


def read(path):
    return TASK.read(path, training=True, tokenize=str.split)


def test_a_mention_of_two_clusters_stays_in_the_first(write, caplog):
    words = ["a (1)", "b (1)|(2)", "c (2)", "d (3)", "b (3)|(2)"]
    (example,) = read(write(document(words, ["e (4)|(5)"])))
    # clusters in the order of their first mentions: 1, 2, 3, 4
    assert TASK.gold(example) == [[(0, 1), (1, 2)], [(2, 3), (4, 5)], [(3, 4)], [(5, 6)]]
    assert "3 mentions ignored in a second cluster" in caplog.text
    caplog.clear()
    (twice,) = read(write(document(["a (1)|(1)", "b (1)"])))
    assert TASK.gold(twice) == [[(0, 1), (1, 2)]]
    assert caplog.text == ""
    assert TASK.score([TASK.gold(example)], [TASK.gold(example)]).value == 100


def long_document(num_sentences):
    """Sentence n has the words ``n`` and ``x``; 0 and 3, 1 and 4, … mean the same, and all x."""
    words = [(at, at + 1) for at in range(2 * num_sentences)]
    return CorefDocument(
        name="a", sentences=tuple((str(number), "x") for number in range(num_sentences)),
        clusters=(*(tuple(words[2 * first :: 6]) for first in range(3)), tuple(words[1::2])),
        speakers=tuple(str(at // 2) for at, _ in words),
    )  # fmt: skip


def test_a_window_is_a_stretch_of_the_document_with_its_mentions():
    short = long_document(MAX_TRAINING_SENTENCES)
    assert TASK.part(short, random.Random(0)) is short
    whole = long_document(120)
    firsts = set()
    for seed in range(200):
        part = TASK.part(whole, random.Random(seed))
        first = int(part.sentences[0][0])
        firsts.add(first)
        assert part.sentences == whole.sentences[first : first + MAX_TRAINING_SENTENCES]
        assert part.speakers == whole.speakers[2 * first : 2 * first + 100]
        assert len(part.speakers) == len(part.tokens) == 100
        for cluster in part.clusters[:3]:
            words = [int(part.tokens[start]) for start, _ in cluster]
            assert words == list(range(words[0], first + MAX_TRAINING_SENTENCES, 3))
        assert part.clusters[3] == tuple((at, at + 1) for at in range(1, 100, 2))
    assert {0, 70} <= firsts  # the first and the last window there are
    assert TASK.part(whole, random.Random(3)) == TASK.part(whole, random.Random(3))


def test_mentions_are_shown_in_numbered_brackets_that_nest():
    example = TASK.example_of(("Anna", "'s", "sister", "saw", "her"), ("배", "가", "왔다"))
    clusters = [[(0, 1), (4, 5)], [(0, 3), (5, 6)]]
    assert TASK.show(example, clusters) == "[[Anna]1 's sister]2 saw [her]1 [배]2 가 왔다"
    assert TASK.show(example, []) == "Anna 's sister saw her 배 가 왔다"
    ends_together = [[(0, 3), (4, 5)], [(2, 3), (7, 8)]]
    assert TASK.show(example, ends_together) == "[Anna 's [sister]2]1 saw [her]1 배 가 [왔다]2"
    same_start_and_end = [[(0, 3), (0, 1)], [(2, 3), (3, 4)]]
    assert TASK.show(example, same_start_and_end) == "[[Anna]1 's [sister]2]1 [saw]2 her 배 가 왔다"


def test_a_line_of_raw_text_is_a_document_of_sentences():
    example = TASK.from_text("Anna sat by the bank. She was tired.", SimpleTokenizer())
    assert [len(words) for words in example.sentences] == [6, 4]
    assert example.sentences[1] == ("She", "was", "tired", ".")
    assert TASK.from_text("민지 가 .", WhitespaceTokenizer()).sentences == (("민지", "가", "."),)
    assert TASK.from_text("", SimpleTokenizer()).sentences == ()
    given = TASK.from_words(["  ", "She left", ""], SimpleTokenizer().tokenize)
    assert given.sentences == ((), ("She", "left"), ())
    given = TASK.from_words(["Hello.", "Goodbye."], SimpleTokenizer().tokenize)
    assert given.sentences == (("Hello", "."), ("Goodbye", "."))
    with pytest.raises(InputError, match="list of sentences"):
        TASK.from_words(["Anna", "can't", "."], SimpleTokenizer().tokenize)
    given = TASK.from_words(["Yes", "그는갔다.", "“왔다!”"], str.split)
    assert len(given.sentences) == 3
    given = TASK.from_words(["Anna can't.", ["She", "left", "."]], SimpleTokenizer().tokenize)
    assert given.text == "Anna can't. She left ."
    assert TASK.as_json(given, [])["text"] == given.text
    assert TASK.from_words([["She", "left"]], str.split).text is None
    assert TASK.gold(example) == []
