"""One example for each predicate."""

import json

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.formats.propbank import read_propbank

SENTENCE = {
    "tokens": ["Mina", "began", "her", "walk"],
    "predicates": [
        {"index": 1, "lemma": "begin", "tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]},
        {"index": 3, "lemma": "walk", "tags": ["O", "O", "B-ARG0", "B-V"]},
    ],
}


@pytest.fixture
def read(write):
    def read(*sentences):
        lines = (json.dumps(sentence, ensure_ascii=False) + "\n" for sentence in sentences)
        return list(read_propbank(write("".join(lines), name="a.jsonl")))

    return read


def changed(predicate=None, **fields):
    """Return the sentence with one predicate, both changed."""
    only = {**SENTENCE["predicates"][0], **(predicate or {})}
    return {**SENTENCE, "predicates": [only], **fields}


def test_each_predicate_is_an_example(read):
    first, second = read(SENTENCE)
    assert first.tokens == second.tokens == ("Mina", "began", "her", "walk")
    assert (first.predicate, second.predicate) == (1, 3)
    assert first.tags == ("B-ARG0", "B-V", "B-ARG1", "I-ARG1")
    (elsewhere,) = read(changed({"index": 2}))  # the verb need not be at the predicate
    assert (elsewhere.predicate, elsewhere.tags[1]) == (2, "B-V")


def test_sentences_without_predicates_yield_nothing(read):
    assert len(read({**SENTENCE, "predicates": []}, SENTENCE)) == 2
    with pytest.raises(FormatError, match=r"/a\.jsonl: no example"):
        read({**SENTENCE, "predicates": []})


def test_a_sentence_with_an_empty_token_is_skipped(read, caplog):
    bad = changed(tokens=["Mina", "began", "", "walk"])
    assert len(read(*[SENTENCE] * 10, bad)) == 20
    assert "empty_token: 1" in caplog.text


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (changed({"tags": ["O", "B-V"]}), r", predicates\[0\]: 4 .* 2 "),
        (changed({"index": 4}), r", predicates\[0\]: .* 4 .* 4 "),
        (changed({"index": -1}), r", predicates\[0\]: .* -1 .* 4 "),
        (changed({"index": "x"}), r": .*predicates\[0\]\.index'.*'x'"),
        (changed({"tags": ["O", "V", "O", "O"]}), r", predicates\[0\]: .*'V'; .* O, B-TYPE"),
        (changed({"tags": ["O", "B-V", "I-ARG1", "O"]}), r", predicates\[0\]: .*'I-ARG1' .*'B-V'"),
        (changed({"tags": "OOOO"}), r": .*predicates\[0\]\.tags'.*'OOOO'"),
        (changed(tokens=["a", 1, "b", "c"]), r": .*'tokens\[1\]'"),
        (changed(tokens=[]), r", predicates\[0\]: .* 1 .* 0 "),
        (changed(predicates=[1]), r": .*'predicates\[0\]'"),
        ({"tokens": ["a"]}, ": .*'predicates'"),
        ({"predicates": []}, ": .*'tokens'"),
    ],
)
def test_damage(read, bad, message):
    with pytest.raises(FormatError, match=rf"a\.jsonl, line 2{message}"):
        read(SENTENCE, bad)
