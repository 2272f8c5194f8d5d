"""Formats in columns: tagged words and characters, treebanks, coreference."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import FormatError
from elmokit.metrics.task_scores import read_spans, write_tags
from elmokit.tasks.formats import conll
from elmokit.tasks.formats.conll import read_characters, read_columns, read_coreference
from elmokit.tasks.formats.conllu import read_conllu, read_morphemes
from elmokit.tasks.tagging import NerTask

from ....builders.task_files import document, row


@pytest.mark.parametrize(
    ("content", "words", "tags"),
    [
        ("Mina\tB-PER\nKim\tI-PER\n\n\nSun\tO\n", "Mina Kim|Sun", "B-PER I-PER|O"),
        ("Mina NNP  B-NP B-PER\nsings VBZ B-VP O\n", "Mina sings", "B-PER O"),
        ("## id-7\t<강:LOC>가\n# text = 강가\n#\tO\n#강\tB-LOC\n", "# #강", "O B-LOC"),
        ("# the O\n# NN O B-ORG\nMeToo NN O I-ORG\n", "# MeToo", "B-ORG I-ORG"),
        ("# a comment\n# 2\n# B-PER\nx I-PER\n\n# O\nwins O\n", "# x|# wins", "B-PER I-PER|O O"),
        ("# E-NER\n\nRain B-ORG\nfalls O\n", "Rain falls", "B-ORG O"),
        ("# outside is O\nRain B-PER\nfalls O\n\n# Vitamin B-12\n", "Rain falls", "B-PER O"),
        ("-DOCSTART- -X- O O\n\nRain NN B-NP O\n\n-DOCSTART- -X- O O\nSun NN B-NP O\n",
         "Rain|Sun", "O|O"),
        ("-DOCSTART- O\nRain B-PER\n-DOCSTART- O\nSun I-PER\n", "Rain|Sun", "B-PER|B-PER"),
        ("1\tO\nof\tO\n", "1 of", "O O"),  # numbers may be words
        # every scheme becomes IOB2
        ("a I-P\nb I-P\nc B-P\nd I-L\ne O\nf I-L\n", "a b c d e f", "B-P I-P B-P B-L O B-L"),
        ("a B-P\nb I-P\nc E-P\nd S-L\ne U-L\nf O\n", "a b c d e f", "B-P I-P I-P B-L B-L O"),
        ("a B-OO\nb I-OO\n", "a b", "B-OO I-OO"),
    ],
)  # fmt: skip
def test_rows_comments_marks_of_documents_and_schemes(write, content, words, tags):
    sentences = list(read_columns(write(content)))
    assert "|".join(" ".join(sentence.tokens) for sentence in sentences) == words
    assert "|".join(" ".join(sentence.tags) for sentence in sentences) == tags


def test_rows_for_spaces_can_be_dropped(write):
    path = write(
        "해\t해\tNNG\tB-PER\n_\t_\t_\tI-PER\n달\t달\tNNG\tI-PER\n_\t_\tSW\tO\n"
        "_\t_\t_\tB-LOC\n별\t별\tNNG\tI-LOC\n"
    )
    (sentence,) = read_columns(path, spaces="drop")
    assert sentence.tokens == ("해", "달", "_", "별")
    assert sentence.tags == ("B-PER", "I-PER", "O", "B-LOC")
    assert len(next(read_columns(path)).tokens) == 6
    (sentence,) = read_columns(write("강\tB-LOC\n \tO\n물\tO\n"), spaces="drop")
    assert sentence.tokens == ("강", "물")


TOKENS = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r\0#0123456789"), min_size=1)
ROWS = st.lists(st.tuples(TOKENS, st.sampled_from(["O", "B-X", "B-강"])), min_size=1)


@given(st.lists(ROWS, min_size=1))
def test_what_is_written_is_read(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("columns") / "a.conll"
    blocks = ["".join(f"{token}\t{tag}\n" for token, tag in rows) for rows in sentences]
    path.write_bytes("\n".join(blocks).encode())
    read = read_columns(path)
    assert [list(zip(one.tokens, one.tags, strict=True)) for one in read] == sentences


NESTED = "{}Am O O\n{}See O O\n{}Anna B-PER O\n{}Rhein I-PER B-LOC\n\n{}Oslo B-LOC O\n{}ruht O O\n"
"""Words, tags, and the tags of spans inside these; before each row its index."""


@pytest.mark.parametrize("separator", ["\t", " "])
@pytest.mark.parametrize("indices", ["1 2 3 4 1 2", "0 1 2 3 0 1", "1-1 1-2 1-3 1-4 2-1 2-2"])
def test_words_that_count_are_refused(write, indices, separator):
    text = NESTED.format(*(f"{index} " for index in indices.split()))
    path = write("# https://example.org [2009-10-17]\n" + text.replace(" ", separator))
    with pytest.raises(FormatError, match=r"column 1 .*cut -f 2,3"):
        list(read_columns(path))


@pytest.mark.parametrize(
    ("text", "entities", "tokens", "tags", "score"),
    [
        ("김민수는 서울 시청에 갔다.", [("PS", 0, 3), ("LC", 5, 10)],
         ["김민수", "는", "서울", "시청", "에", "가", "었", "다", "."],
         ["U-PS", "O", "B-LC", "L-LC", "O"], 100),
        # An entity inside a token is taught but cannot be found: 북미 is no LC as a whole.
        ("북미는 서울", [("LC", 0, 1), ("LC", 4, 6)], ["북미", "는", "서울"],
         ["U-LC", "O", "U-LC"], 50),
    ],
)  # fmt: skip
def test_characters_become_tokens_and_their_tags_go_with_them(
    write, text, entities, tokens, tags, score
):
    task, own = NerTask(units="characters"), write_tags(entities, len(text), scheme="iob2")
    rows = "".join(f"{character}\t{tag}\n" for character, tag in zip(text, own, strict=True))
    path = write(f"## name\t{text}\n{rows}\n")
    (example,) = task.read(path, training=True, tokenize=lambda _: tokens)
    assert (example.text, example.tokens) == (text, tuple(tokens))
    assert list(example.tags[: len(tags)]) == tags
    assert read_spans(task.gold(example)) == entities
    answer = task.in_units_of_gold(example, list(example.tags))
    assert task.score([task.gold(example)], [answer]).value == score


def test_characters_may_be_decomposed_or_composed_ones_that_nfc_decomposes(write):
    signs = [unicodedata.normalize("NFD", "한"), "\u0958", "\ufb2a"]
    path = write("".join(f"{sign}\tO\n" for sign in signs))
    (example,) = read_characters(path, lambda text: [text])
    assert example.text == "한\u0958\ufb2a"


def test_tokens_that_share_characters_give_spans_that_do_not():
    """갔다 is 가, 었, 다 in the same two characters; a token without characters is in no span."""
    shared, empty = ((0, 2), (0, 2), (0, 2), (3, 5)), ((0, 2), (2, 2), (2, 4))
    spans = [("A", 0, 1), ("B", 1, 3), ("C", 3, 4)]
    assert conll.spans_of_characters(spans, shared) == [("A", 0, 2), ("C", 3, 5)]
    assert conll.spans_of_tokens([("A", 0, 1), ("B", 1, 2)], shared) == [("A", 0, 3)]
    assert conll.spans_of_tokens([("A", 0, 4)], empty) == [("A", 0, 3)]
    assert conll.spans_of_tokens([("A", 0, 2)], empty) == [("A", 0, 1)]


def test_treebanks_with_comments_and_rows_that_are_no_words(write):
    other = "0.1\t_" + "\t_" * 8 + "\n1-2\tdon't" + "\t_" * 8 + "\n"  # empty node, multiword token
    path = write(
        "#newpar\n# text = 강이 = 길다.\n" + row(1, "강이") + row(2, "길다.", "ADJ")
        + "\n# lost\n\n" + other + row(1, "do", "AUX") + row(2, "n't", "PART") + "\n# end\n"
    )  # fmt: skip
    first, second = read_conllu(path)
    assert (first.tokens, first.tags) == (("강이", "길다."), ("NOUN", "ADJ"))
    assert (first.location.line, second.location.line) == (3, 10)
    assert (second.tokens, second.tags) == (("do", "n't"), ("AUX", "PART"))


@pytest.mark.parametrize(
    ("word", "lemma", "xpos", "morphemes", "tags"),
    [
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
    ("sentences", "clusters"),
    [
        # tokens: 0        1         2          3          4            5         6
        ([["Mina (4", "Kim 4)", "sings _"], ["Her (7|(4)", "sister 7)", "hears -", "her (4)"]],
         (((0, 2), (3, 4), (6, 7)), ((3, 5),))),
        ([["a (1", "b (1|1)", "c 1)"]], (((0, 3), (1, 2)),)),  # the inner one closes first
        ([["a (1", "b (2", "c 1)", "d 2)", "e (1)|(2)"]],  # they cross, and share a span
         (((0, 3), (4, 5)), ((1, 4), (4, 5)))),
    ],
)  # fmt: skip
def test_mentions_count_in_tokens_of_the_document_and_may_nest_and_cross(
    write, sentences, clusters
):
    (only,) = read_coreference(write(document(*sentences)))
    assert only.clusters == clusters
    assert (only.name, only.genre) == ("GUM_news_river", "news")
    assert only.speakers is None
    assert [len(words) for words in only.sentences] == [len(words) for words in sentences]


def test_speakers_genres_spaces_and_an_empty_last_column(write):
    content = document(["네 - 미나", "왜 -"], name="bc/cctv/00/cctv_0001", part="002") + (
        "#begin document (nw/a); part 000\nnw/a 0  0   Rain NN * - - - - * (ARG0*) (3)\n"
        "\n\nnw/a 0 0 It PRP * - - - - * (3)\n\n#end document\n"
        "#begin document (77_a); part 0\n77_a\t0\t0\tRain\t_\t_\t_\t_\t_\t_\t_\t\n#end document\n"
    )
    first, spaces, empty = read_coreference(write(content))
    assert first.speakers == ("미나", None)
    assert (first.genre, first.clusters) == ("bc", ())
    assert spaces.clusters == (((0, 1), (1, 2)),)
    assert (empty.clusters, empty.genre, empty.speakers) == ((), None, None)
