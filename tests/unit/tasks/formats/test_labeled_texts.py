"""Texts and pairs of texts with a label, and sentiment trees."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import FormatError
from elmokit.tasks.formats import labeled_texts
from elmokit.tasks.formats.labeled_texts import read_labeled_texts, read_sentiment_trees

PAIR = {"premise": "비가 온다.", "hypothesis": "날이 맑다.", "label": 1}
PAIRS = {"texts": (("premise", "first"), ("hypothesis", "second")), "missing": ("", "-")}


def lines(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def test_texts_keep_their_form_and_words_come_from_the_tokenizer(write):
    path = write('id\tdocument\tlabel\n1\t"별로 예요\t0\n2\t최고 !\t1\n', name="a.tsv")
    texts = (("text", "document"),)
    first, second = read_labeled_texts(path, str.split, texts=texts)
    assert (first.texts, first.label) == (('"별로 예요',), "0")
    assert (second.sentences, second.label) == ((("최고", "!"),), "1")
    (pair,) = read_labeled_texts(write(lines(PAIR), name="a.jsonl"), str.split, **PAIRS)
    assert pair.texts == ("비가 온다.", "날이 맑다.")
    assert (pair.sentences, pair.label) == ((("비가", "온다."), ("날이", "맑다.")), "1")


@pytest.mark.parametrize("label", ["-", "", None])
def test_pairs_without_gold_label_are_left_out_and_no_fault(write, label, caplog):
    path = write(lines(PAIR, {**PAIR, "label": label}), name="a.jsonl")
    assert len(list(read_labeled_texts(path, str.split, **PAIRS))) == 1
    assert "no_gold_label: 1" in caplog.text


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({**PAIR, "premise": " \n"}, r"a\.jsonl: 1 of 2 .*empty_text: 1 .*line 2\b"),
        ({**PAIR, "hypothesis": ""}, r"a\.jsonl: 1 of 2 .*empty_text: 1 .*line 2\b"),
        ({**PAIR, "premise": 1}, r"line 2: .*'premise'"),
        ({"premise": "a", "label": "x"}, "line 2: .*'hypothesis'; .*: premise, label"),
        ({**PAIR, "premise": "x " * 6}, "line 2: .* 6 words; at most 5"),
        ([], "line 2: "),
    ],
)
def test_damage(write, bad, message, monkeypatch):
    monkeypatch.setattr(labeled_texts, "MAX_TEXT_WORDS", 5)
    path = write(lines(PAIR, bad), name="a.jsonl")
    with pytest.raises(FormatError, match=message):
        list(read_labeled_texts(path, str.split, **PAIRS))


TREE = "(3 (2 (2 A) (1 (1 slow) (2 river))) (4 (4 shines) (2 .)))"


@pytest.mark.parametrize(
    ("least", "phrases"),
    [
        (None, []),
        (1, ["A slow river", "A", "slow river", "slow", "river", "shines .", "shines", "."]),
        (2, ["A slow river", "slow river", "shines ."]),
        (4, []),
    ],
)
def test_phrases_follow_their_sentence(write, least, phrases):
    path = write(f"{TREE}\n\n(0 No)\n")
    examples = list(read_sentiment_trees(path, min_phrase_tokens=least))
    found = [example.texts[0] for example in examples]
    assert found[: len(phrases) + 1] == ["A slow river shines .", *phrases]
    labels = {example.texts[0]: example.label for example in examples}
    assert (labels["A slow river shines ."], labels["No"]) == ("3", "0")
    assert (labels.get("slow river", "1"), labels.get("shines .", "4")) == ("1", "4")


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (r"(2 (2 -LRB-) (2 (2 1\/2) (2 -rrb-)))", ("(", "1/2", "-rrb-")),  # escapes
        ("(2 (2 (2 강)) (2 1\xa0/2) (2 b))", ("강", "1\xa0/2", "b")),  # one or three parts
        ("(2 (2 강) " * 4_999 + "(3 끝)" + ")" * 4_999, ("강",) * 4_999 + ("끝",)),  # deep
    ],
)
def test_words_of_trees(write, tree, words):
    (example,) = read_sentiment_trees(write(tree))
    assert example.sentences == (words,)


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("(2 (2 a) (2 b)", 14),
        ("(2 (2 a) (2 b)))", 15),
        ("(2 a) (2 b)", 6),
        ("(5 a)", 1),
        ("((2 a))", 1),
        ("(2 )", 3),
        ("(2 (2 ) (2 a))", 6),
        ("(", 1),
        ("3 a b", 0),
        (")", 0),
        ("+\ta fine text", 0),
    ],
)
def test_damaged_trees(write, line, at):
    with pytest.raises(FormatError, match=rf"line 2: .* {at}\. "):
        list(read_sentiment_trees(write(f"(2 a)\n{line}\n")))


@given(
    st.recursive(
        st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1).map(
            lambda word: ("2", [word])
        ),
        lambda parts: st.tuples(st.sampled_from("01234"), st.lists(parts, min_size=1)),
    )
)
def test_words_and_nodes_survive(tmp_path_factory, tree):
    def written(node):
        label, parts = node
        inside = (one if isinstance(one, str) else written(one) for one in parts)
        return f"({label} {' '.join(inside)})"

    def nodes(node):
        label, parts = node
        below = [[(None, [one])] if isinstance(one, str) else nodes(one) for one in parts]
        words = [word for one in below for word in one[0][1]]
        return [(label, words)] + [one for part in below for one in part if one[0] is not None]

    path = tmp_path_factory.mktemp("trees") / "a.txt"
    path.write_bytes(written(tree).encode())
    read = read_sentiment_trees(path, min_phrase_tokens=1)
    assert [(one.label, list(one.sentences[0])) for one in read] == nodes(tree)
