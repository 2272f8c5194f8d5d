"""Ambiguous pronouns."""

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.formats.gap import read_gap

HEADER = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL"
TEXT = 'Mina saw Ann; "she" waved.'
#       0    5   9    14


def row(*, pronoun=15, first=0, second=9, first_is="FALSE", second_is="TRUE"):
    return f"t-1\t{TEXT}\tshe\t{pronoun}\tMina\t{first}\t{first_is}\tAnn\t{second}\t{second_is}\thttp://a"


@pytest.fixture
def read(write):
    def read(*rows, **settings):
        return list(read_gap(write("\n".join([HEADER, *rows]), name="gap.tsv"), **settings))

    return read


@pytest.mark.parametrize(
    ("first_is", "second_is", "answer"),
    [("FALSE", "TRUE", 1), ("TRUE", "FALSE", 0), ("FALSE", "FALSE", None)],
)
def test_spans_and_answer(read, first_is, second_is, answer):
    (example,) = read(row(first_is=first_is, second_is=second_is))
    assert example.pronoun == (15, 18)
    assert example.candidates == ((0, 4), (9, 12))
    assert [TEXT[start:end] for start, end in example.candidates] == ["Mina", "Ann"]
    assert (example.answer, example.name, example.location.line) == (answer, "t-1", 2)


@pytest.mark.parametrize("offsets", [{"pronoun": 14}, {"first": 99}, {"second": 10}])
def test_words_that_do_not_stand_at_their_offset(read, report, offsets):
    assert len(read(row(), row(**offsets), report=report, max_skipped_share=0.5)) == 1
    assert report.skipped == {"target_not_in_text": 1}
    with pytest.raises(FormatError, match="1 of 2 examples cannot be used"):
        read(row(), row(**offsets))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(first_is="TRUE"), "line 3: A-coref and B-coref are both TRUE"),
        (row(first_is="maybe"), "line 3: field 'A-coref' must be true or false"),
        (row(pronoun="x"), "line 3: field 'Pronoun-offset' must be a whole number"),
        ("t-1\tshort", "line 3: 2 columns, but the header names 11"),
    ],
)
def test_damage(read, bad, message):
    with pytest.raises(FormatError, match=message):
        read(row(), bad)


def test_a_table_of_something_else(write):
    with pytest.raises(FormatError, match="no field 'Text'; the record has: a, b"):
        list(read_gap(write("a\tb\n1\t2\n", name="a.tsv")))


def test_a_header_alone(read):
    with pytest.raises(FormatError, match="no example in the file"):
        read()
