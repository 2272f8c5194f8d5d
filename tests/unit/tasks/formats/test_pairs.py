"""Pairs of texts with a label."""

import json

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.formats.pairs import read_pairs

PAIR = {"premise": "비가 온다.", "hypothesis": "날이 맑다.", "label": "contradiction"}


@pytest.fixture
def read(write):
    def read(*pairs, **settings):
        lines = (json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs)
        return list(read_pairs(write("".join(lines), name="a.jsonl"), **settings))

    return read


def test_json_lines(read):
    (pair,) = read({**PAIR, "guid": "x"})
    assert (pair.first, pair.second, pair.label) == ("비가 온다.", "날이 맑다.", "contradiction")
    assert pair.location.line == 1


@pytest.mark.parametrize(("name", "separator"), [("a.tsv", "\t"), ("a.csv", ",")])
def test_tables_with_other_names(write, name, separator):
    rows = [["gold_label", "sentence1", "sentence2"], ["neutral", "It rains.", "It is May."]]
    path = write("\n".join(map(separator.join, rows)), name=name)
    (pair,) = read_pairs(path, first="sentence1", second="sentence2", label="gold_label")
    assert (pair.first, pair.second, pair.label) == ("It rains.", "It is May.", "neutral")


@pytest.mark.parametrize("label", ["-", "", None])
def test_pairs_without_gold_label_are_left_out_and_no_fault(read, report, label):
    assert len(read(PAIR, {**PAIR, "label": label}, report=report)) == 1
    assert report.skipped == {"no_gold_label": 1}
    assert (report.examples, report.num_faults) == (1, 0)


@pytest.mark.parametrize("field", ["premise", "hypothesis"])
def test_blank_texts_are_skipped(read, report, field):
    blank = {**PAIR, field: " \n"}
    report.max_skipped_share = 0.5
    assert len(read(PAIR, blank, report=report)) == 1
    assert report.skipped == {"empty_text": 1}
    with pytest.raises(FormatError, match=r"a\.jsonl: 1 of 2 .* 0\.05 .*empty_text: 1 .*line 2\b"):
        read(PAIR, blank)


def test_other_labels(read):
    pair = {"Text": "강은 길다", "Question": "짧은가?", "Answer": 0}
    names = {"first": "Text", "second": "Question", "label": "Answer"}
    assert read(pair, **names, labels=("0", "1"))[0].label == "0"
    assert read(pair, **names, labels=None)[0].label == "0"
    with pytest.raises(FormatError, match=r"'0'.*'Answer'.*: yes, no"):
        read(pair, **names, labels=("yes", "no"))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            {**PAIR, "label": "maybe"},
            "line 2: .*'maybe' .*'label'; .*entailment, neutral, contra",
        ),
        ({**PAIR, "premise": 1}, r"line 2: .*'premise' .* 1\b"),
        ({"premise": "a", "label": "neutral"}, "line 2: .*'hypothesis'; .*: premise, label"),
        ([], r"line 2: .*JSON object, .* \[\]"),
    ],
)
def test_damage(read, bad, message):
    with pytest.raises(FormatError, match=message):
        read(PAIR, bad)


def test_files_without_pairs(read):
    with pytest.raises(FormatError, match=r"/a\.jsonl: .*\bempty\b"):
        read()
