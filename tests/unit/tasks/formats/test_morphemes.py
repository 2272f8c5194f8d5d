"""Morphemes of treebanks whose words are eojeol."""

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.tasks.formats.morphemes import read_morphemes


def row(number, word, morphemes, tags):
    return f"{number}\t{word}\t{morphemes}\tNOUN\t{tags}\t_\t0\t_\t_\t_\n"


def test_a_word_becomes_its_morphemes(write):
    path = write(
        "# sent_id = a\n" + row(1, "고향은", "고향+은", "ncn+jxt") + row(2, ".", ".", "sf")
        + "\n" + row(1, "서울입니다", "서울+이+ㅂ니다", "nq+jp+ef")
    )  # fmt: skip
    first, second = read_morphemes(path)
    assert (first.tokens, first.tags) == (("고향", "은", "."), ("ncn", "jxt", "sf"))
    assert second.tokens == ("서울", "이", "ㅂ니다")


def test_a_plus_sign_is_a_word(write):
    """UD Korean-GSD has ``+SW`` for its tag."""
    rows = [row(1, "+", "+", "sy"), row(2, "+", "+", "+SW"), row(3, "a+b", "a+b", "sl")]
    (sentence,) = read_morphemes(write("".join(rows)))
    assert sentence.tokens == ("+", "+", "a+b")
    assert sentence.tags == ("sy", "SW", "sl")


def test_an_underscore_is_a_word_only_where_it_stands(write):
    (sentence,) = read_morphemes(write(row(1, "_", "_", "sy")))
    assert sentence.tokens == ("_",)


@pytest.mark.parametrize(
    "row_of", [("고향+은", "ncn+jxt+x"), ("고향+", "ncn+jxt"), ("은", "a+b"), ("_", "ncn")]
)
def test_as_many_morphemes_as_tags(write, row_of):
    with pytest.raises(FormatError, match=r"line 1: .*'고향은' .* 3 .* 5 .*units=words"):
        list(read_morphemes(write(row(1, "고향은", *row_of))))


def test_a_missing_file_is_told_at_once(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_morphemes(tmp_path / "no.conllu")


def test_standard_input_is_refused_at_once():
    with pytest.raises(InputError, match=r"^-: .* twice"):
        read_morphemes("-")
