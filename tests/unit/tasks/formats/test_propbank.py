"""One example for each predicate."""

import json
import time

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.formats.propbank import read_propbank

SENTENCE = {
    "id": "s-1",
    "tokens": ["Mina", "began", "her", "walk"],
    "pos": ["NNP", "VBD", "PRP$", "NN"],
    "predicates": [
        {
            "index": 1,
            "lemma": "begin",
            "sense": "begin.01",
            "tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"],
        },
        {"index": 3, "lemma": "walk", "sense": "walk.01", "tags": ["O", "O", "B-ARG0", "B-V"]},
    ],
}


@pytest.fixture
def read(write):
    """Read sentences, given as dictionaries."""

    def read(*sentences, **settings):
        lines = (json.dumps(sentence, ensure_ascii=False) + "\n" for sentence in sentences)
        return list(read_propbank(write("".join(lines), name="a.jsonl"), **settings))

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
    assert str(second.location).endswith("a.jsonl, line 1, predicates[1]")


def test_verbs_alone(read):
    assert [one.predicate for one in read(SENTENCE, predicates="verbs")] == [1]
    for pos in ("MD", "MD.PRS", "VBZ"):  # as `SrlTask` has it
        modal = changed({"index": 0}, pos=[pos, "NN", "NN", "NN"])
        assert len(read(modal, predicates="verbs")) == 1


def test_sentences_without_predicates_yield_nothing(read):
    assert len(read({**SENTENCE, "predicates": []}, SENTENCE)) == 2
    with pytest.raises(FormatError, match=r"/a\.jsonl: .*\bempty\b"):
        read({**SENTENCE, "predicates": []})


def test_the_verb_may_stand_elsewhere_than_the_predicate(read):
    (example,) = read(changed({"index": 2}))
    assert example.predicate == 2
    assert example.tags[1] == "B-V"


def test_korean(read):
    tags = ["B-ARG0", "B-ARG1", "B-V"]
    (example,) = read(
        {"tokens": ["비가", "강을", "채웠다"], "predicates": [{"index": 2, "tags": tags}]}
    )
    assert example.tokens[2] == "채웠다"


def test_a_sentence_with_an_empty_token_is_skipped(read, report):
    bad = changed(tokens=["Mina", "began", "", "walk"])
    report.max_skipped_share = 0.5
    assert len(read(SENTENCE, bad, report=report)) == 2
    assert report.skipped == {"empty_token": 1}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (changed({"tags": ["O", "B-V"]}), r", predicates\[0\]: 4 .* 2 "),
        (changed({"index": 4}), r", predicates\[0\]: .* 4 .* 4 "),
        (changed({"index": -1}), r", predicates\[0\]: .* -1 .* 4 "),
        (changed({"index": "x"}), r", predicates\[0\]: .*'index' .*'x'"),
        (changed({"tags": ["O", "V", "O", "O"]}), r", predicates\[0\]: .*'V'; .* O, B-TYPE"),
        (
            changed({"tags": ["O", "B-V", "I-ARG1", "O"]}),
            r", predicates\[0\]: .*'I-ARG1' .*'B-V'.*'B-ARG1'",
        ),
        (changed({"tags": "OOOO"}), r", predicates\[0\]: .*'tags' .*'OOOO'"),
        (changed(tokens=["a", 1, "b", "c"]), r": .*'tokens' .*\['a', 1, 'b', 'c'\]"),
        (changed(tokens=[]), r", predicates\[0\]: .* 1 .* 0 "),
        (changed(predicates={"index": 1}), r": .*'predicates' .*\{'index': 1\}"),
        (changed(predicates=[1]), r", predicates\[0\]: .*JSON object, .* 1\b"),
        ({"tokens": ["a"]}, ": .*'predicates'; .*: tokens"),
        ({"predicates": []}, ": .*'tokens'; .*: predicates"),
    ],
)
def test_damage(read, bad, message):
    with pytest.raises(FormatError, match=rf"a\.jsonl, line 2{message}"):
        read(SENTENCE, bad)


def test_verbs_need_parts_of_speech(read):
    with pytest.raises(FormatError, match=r"line 1: 4 .* 3 "):
        read(changed(pos=["NN", "VB", "NN"]), predicates="verbs")


@pytest.mark.usefixtures("without_type_checks")
def test_a_sentence_of_50000_words(read):
    tags = ["B-V"] + ["B-ARG1"] + ["I-ARG1"] * 49_998
    begin = time.process_time()
    (example,) = read({"tokens": ["말"] * 50_000, "predicates": [{"index": 0, "tags": tags}]})
    assert len(example.tags) == 50_000
    assert time.process_time() - begin < 30
