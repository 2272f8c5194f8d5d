"""Words and spans in the text as it was written."""

import pytest

from elmokit.tasks.srl import SrlTask
from elmokit.tasks.tagging import NerTask, PosTask
from elmokit.tasks.written import WrittenWords
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import build_tokenizer


@pytest.fixture
def korean():
    pytest.importorskip("kiwipiepy")
    return NormalizingTokenizer(build_tokenizer("korean"), "plain-1")


def test_entities_are_marked_in_the_text_itself(korean):
    example = NerTask().from_text("김민수는\u200b  “서울”에 갔다.", korean)
    tags = ["O"] * len(example.tokens)
    tags[0], tags[3] = "U-PER", "U-LOC"
    assert example.tokens[3] == "서울"
    assert NerTask().show(example, tags) == "[김민수 PER]는\u200b  “[서울 LOC]”에 갔다."
    answer = NerTask().as_json(example, tags, [0.5, 0.25])
    assert answer["entities"] == [
        {"type": "PER", "text": "김민수", "start": 0, "end": 3, "token_start": 0, "token_end": 1,
         "probability": 0.5},
        {"type": "LOC", "text": "서울", "start": 8, "end": 10, "token_start": 3, "token_end": 4,
         "probability": 0.25},
    ]  # fmt: skip


def test_tags_stand_behind_the_words_as_written_or_as_read_where_they_share_characters(korean):
    example = PosTask().from_text("서울에  갔다…", korean)
    assert example.tokens == ("서울", "에", "가", "었", "다", "...")
    assert PosTask().show(example, list("ABCDEF")) == "서울/A 에/B 가/C 었/D 다/E …/F"
    answer = PosTask().as_json(example, list("ABCDEF"), [0.5] * 6)
    assert answer["text"] == "서울에  갔다…"
    assert answer["tokens"][3] == {
        "text": "었", "start": 5, "end": 6, "tag": "D", "probability": 0.5,
    }  # fmt: skip
    assert answer["tokens"][5]["end"] - answer["tokens"][5]["start"] == 1


def test_roles_are_shown_without_the_asterisks_of_the_predicate():
    example = SrlTask().from_text("The dog  *bit* him.", build_tokenizer("simple"))
    tags = ["B-A0", "I-A0", "B-V", "B-A1", "O"]
    assert SrlTask().show(example, tags) == "[A0 The dog]  [V bit] [A1 him]."
    answer = SrlTask().as_json(example, tags)
    assert answer["text"] == "The dog  *bit* him."
    assert [role["text"] for role in answer["roles"]] == ["The dog", "bit", "him"]
    assert (answer["roles"][1]["start"], answer["predicate"]) == (10, 2)
    assert "probability" not in answer["roles"][0]


@pytest.mark.parametrize(
    ("text", "words", "predicate"),
    [
        ("The U.S. *attacked* it.", "The U.S. attacked it .", (2, 3)),
        ("I *could*n't go.", "I could n't go .", (1, 2)),
        ("*Go* at 5 p.m. now", "Go at 5 p.m. now", (0, 1)),
        ("It *took off* late", "It took off late", (1, 3)),
        ("They *gave* it up", "They gave it up", (1, 2)),
    ],
)
def test_a_marked_text_has_the_words_of_the_text_without_the_marks(text, words, predicate):
    example = SrlTask().from_text(text, build_tokenizer("simple:en"))
    assert " ".join(example.tokens) == words
    first, last = predicate
    tags = ["O"] * len(example.tokens)
    tags[first:last] = ["B-V", *["I-V"] * (last - first - 1)]
    answer = SrlTask().as_json(example, tags)
    assert answer["predicate"] == first
    assert [role["text"] for role in answer["roles"]] == [text.split("*")[1]]


def test_words_that_are_not_in_the_text_have_no_place():
    written = WrittenWords(["a", "x", "b"], f"a {'y' * 200} b")
    assert written.as_json()[0] == {"text": "a", "start": None, "end": None}
    assert written.span(0, 2)["text"] == "a x"
    assert written.each() == ["a", "x", "b"]
    assert written.marked([(1, 3, "<", ">")]) == "a <x b>"


def test_spans_may_contain_one_another_and_be_of_nothing_written():
    written = WrittenWords(["a", "b", "c"])
    marks = [(0, 2, "[", "]1"), (0, 3, "[", "]2"), (1, 2, "[", "]3"), (2, 3, "[", "]4")]
    assert written.marked(marks) == "[[a [b]3]1 [c]4]2"
    empty = WrittenWords(["의사", "이", "다"], "의사다")
    assert empty.marked([(1, 2, "[", "]1")]) == "의사[]1다"
