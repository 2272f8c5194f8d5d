"""Treebanks in ten columns, and the morphemes of Korean ones."""

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.formats.conllu import read_conllu, read_morphemes


def row(number, word, tag="NOUN", *, lemma="_", xpos="_", deprel="_"):
    return f"{number}\t{word}\t{lemma}\t{tag}\t{xpos}\t_\t0\t{deprel}\t_\t_\n"


OTHER = "0.1\t_" + "\t_" * 8 + "\n1-2\tdon't" + "\t_" * 8 + "\n"
"""An empty node and a multiword token."""


def test_sentences_with_comments_and_rows_that_are_no_words(write):
    path = write(
        "#newpar\n# text = 강이 = 길다.\n" + row(1, "강이") + row(2, "길다.", "ADJ")
        + "\n# lost\n\n" + OTHER + row(1, "do", "AUX") + row(2, "n't", "PART") + "\n# end\n"
    )  # fmt: skip
    first, second = read_conllu(path)
    assert (first.tokens, first.tags) == (("강이", "길다."), ("NOUN", "ADJ"))
    assert (first.location.line, second.location.line) == (3, 10)
    assert (second.tokens, second.tags) == (("do", "n't"), ("AUX", "PART"))


@pytest.mark.parametrize(
    ("column", "tag"), [("upos", "NOUN"), ("xpos", "nq"), ("lemma", "강"), ("deprel", "root")]
)
def test_the_column_is_chosen(write, column, tag):
    path = write(row(1, "강이", lemma="강", xpos="nq", deprel="root"))
    (sentence,) = read_conllu(path, column=column)
    assert sentence.tags == (tag,)


def test_an_underscore_is_a_word_and_a_lemma_and_other_tags_are_free(write):
    path = write(row(1, "_", "NN", xpos="x"))
    assert next(read_conllu(path, column="lemma")).tags == ("_",)
    assert next(read_conllu(path, column="xpos")).tags == ("x",)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(2, "b")[:-3] + "\n", "line 2: .* tabs"),
        (row(2, "b").replace("\t", " "), "line 2: .* tabs"),
        (row(3, "b"), "line 2: .* 2 .*'3'"),
        (row(1, "b"), "line 2: .* 2 .*'1'"),
        (row("9" * 5000, "b"), "line 2: .* 2 .*'999"),
        (row("two", "b"), "line 2: .* 2 .*'two'"),
        (row(2, " "), "line 2: .* 2 "),
        (row(2, "b", "NUON"), "line 2: .*'NUON' .*'upos'; .*NOUN"),
        (row(2, "b", "_"), "line 2: .*'_' .*'upos'"),
        (row(2, "b", ""), "line 2: .*'' .*'upos'"),
        ("# text = inside\n", "line 2: .* tabs"),
        ("\n" + OTHER, "line 3: .* words"),
    ],
)
def test_damage(write, bad, message):
    with pytest.raises(FormatError, match=message):
        list(read_conllu(write(row(1, "a") + bad)))


@pytest.mark.parametrize("read", [read_conllu, read_morphemes])
def test_files_without_sentences(write, read, tmp_path):
    with pytest.raises(FormatError, match=r"/data\.txt: no example"):
        list(read(write("# text = nothing\n\n")))
    with pytest.raises(FileNotFoundError):  # at once
        read(tmp_path / "absent.conllu")


@pytest.mark.parametrize(
    ("word", "lemma", "xpos", "morphemes", "tags"),
    [
        ("고향은", "고향+은", "ncn+jxt", ("고향", "은"), ("ncn", "jxt")),
        ("서울입니다", "서울+이+ㅂ니다", "nq+jp+ef", ("서울", "이", "ㅂ니다"), ("nq", "jp", "ef")),
        ("+", "+", "sy", ("+",), ("sy",)),
        ("+", "+", "+SW", ("+",), ("SW",)),  # as in UD Korean-GSD
        ("a+b", "a+b", "sl", ("a+b",), ("sl",)),
        ("_", "_", "sy", ("_",), ("sy",)),
    ],
)
def test_a_word_becomes_its_morphemes(write, word, lemma, xpos, morphemes, tags):
    path = write(row(1, word, lemma=lemma, xpos=xpos) + row(2, ".", lemma=".", xpos="sf"))
    (sentence,) = read_morphemes(path)
    assert (sentence.tokens, sentence.tags) == ((*morphemes, "."), (*tags, "sf"))


@pytest.mark.parametrize(
    ("lemma", "xpos"),
    [("고향+은", "ncn+jxt+x"), ("고향+", "ncn+jxt"), ("은", "a+b"), ("_", "ncn"), ("은", "_")],
)
def test_as_many_morphemes_as_tags(write, lemma, xpos):
    with pytest.raises(FormatError, match=r"line 1: .*'고향은' .* 3 .* 5 .*units=words"):
        list(read_morphemes(write(row(1, "고향은", lemma=lemma, xpos=xpos))))
