"""Tagged sentences in columns, of words and of characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import FormatError
from elmokit.metrics.span_f1 import read_spans
from elmokit.tasks.formats.conll import (
    find_scheme,
    read_characters,
    read_columns,
    spans_of_characters,
    spans_of_tokens,
)
from elmokit.tasks.formats.reading import Columns
from elmokit.tasks.tagging import NerTask


@pytest.mark.parametrize(
    ("content", "words", "tags"),
    [
        ("Mina\tB-PER\nKim\tI-PER\n\n\nSun\tO\n", "Mina Kim|Sun", "B-PER I-PER|O"),
        ("Mina NNP  B-NP B-PER\nsings VBZ B-VP O\n", "Mina sings", "B-PER O"),
        ("## id-7\t<강:LOC>가\n# text = 강가\n#\tO\n#강\tB-LOC\n", "# #강", "O B-LOC"),
        ("# the O\n# NN O B-ORG\nMeToo NN O I-ORG\n", "# MeToo", "B-ORG I-ORG"),
        ("# a comment\n# 2\n# B-PER\nx I-PER\n\n# O\nwins O\n", "# x|# wins", "B-PER I-PER|O O"),
        ("-DOCSTART- -X- O O\n\nRain NN B-NP O\n\n-DOCSTART- -X- O O\nSun NN B-NP O\n",
         "Rain|Sun", "O|O"),
    ],
)  # fmt: skip
def test_rows_comments_and_marks_of_documents(write, content, words, tags):
    sentences = list(read_columns(write(content)))
    assert "|".join(" ".join(one.tokens) for one in sentences) == words
    assert "|".join(" ".join(one.tags) for one in sentences) == tags


def test_tokens_keep_their_spaces_between_tabs_and_sentences_their_place(write):
    first, second = read_columns(write("New York\tB-LOC\n \tO\n\nb\tO\n"))
    assert first.tokens == ("New York", " ")
    assert (first.location.line, second.location.line) == (1, 4)


@pytest.mark.parametrize(
    "comment", ["# The tags are B-PER and O", "# outside is O", "# Vitamin B-12", "#", "## 1"]
)
def test_a_comment_may_end_like_a_row(write, comment):
    (sentence,) = read_columns(write(f"{comment}\nRain B-PER\nfalls O\n\n{comment}\n"))
    assert sentence.tokens == ("Rain", "falls")


@pytest.mark.parametrize(
    ("scheme", "given", "expected"),
    [
        ("iob1", "I-P I-P B-P I-L O I-L", "B-P I-P B-P B-L O B-L"),
        ("bioul", "B-P I-P E-P S-L S-L U-L O", "B-P I-P I-P B-L B-L B-L O"),
        ("iob2", "B-OO I-OO", "B-OO I-OO"),
    ],
)
def test_every_scheme_becomes_iob2(write, scheme, given, expected):
    rows = "".join(f"w {tag}\n" for tag in given.split())
    (sentence,) = read_columns(write(rows), scheme=scheme)
    assert sentence.tags == tuple(expected.split())
    with pytest.raises(FormatError, match=r"line 2: .*'I-O'.* not be O"):
        list(read_columns(write("a\tO\nb\tI-O\n"), scheme=scheme))


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("I-PER I-PER O I-LOC B-LOC", "iob1"),
        ("B-PER I-PER O B-LOC", "iob2"),
        ("B-PER O I-LOC", "iob2"),  # as many begin with B: rather damaged
        ("B-PER L-PER", "bioul"),
        ("O S-PER", "bioul"),
        ("B-PER I-PER O B-LOC O E-LOC", "iob2"),  # a slip
        ("O O", "iob2"),
        ("B-PER PER", "iob2"),
    ],
)
def test_the_scheme_of_a_file(write, tags, scheme):
    rows = "".join(f"w {tag}\n" for tag in tags.split())
    assert find_scheme(write(rows)) == scheme


def test_rows_for_spaces_can_be_dropped(write, caplog):
    path = write(
        "해\t해\tNNG\tB-PER\n_\t_\t_\tI-PER\n달\t달\tNNG\tI-PER\n_\t_\tSW\tO\n"
        "_\t_\t_\tB-LOC\n별\t별\tNNG\tI-LOC\n"
    )
    (sentence,) = read_columns(path, spaces="drop")
    assert sentence.tokens == ("해", "달", "_", "별")
    assert sentence.tags == ("B-PER", "I-PER", "O", "B-LOC")
    assert "tag_moved: 1" in caplog.text
    assert len(next(read_columns(path)).tokens) == 6
    (sentence,) = read_columns(write("강\tB-LOC\n \tO\n물\tO\n"), spaces="drop")
    assert sentence.tokens == ("강", "물")


@pytest.mark.parametrize(
    ("useless", "reason"), [("a\tO\n\tO\n\n", "empty_token"), (" \tO\n\n", "empty_sentence")]
)
def test_sentences_of_no_use_are_skipped(write, useless, reason, caplog):
    rest = "b\tO\n\n" * 19
    assert len(list(read_columns(write(useless + rest), spaces="drop"))) == 19
    assert f"{reason}: 1" in caplog.text
    with pytest.raises(FormatError, match=rf"data\.txt: 1 of 1 .*{reason}: 1 .*line 1\b"):
        list(read_columns(write(useless), spaces="drop"))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("b\n", r"line 2: .*\['b'\].* 2\b"),
        ("b\tX\tO\n", r"line 2: .*\['b', 'X', 'O'\].* 2\b"),
        ("b O\n", "line 2: .*'b O'.* 2 .* tab"),
        ("b\t\n", "line 2: .*''.* O, B-TYPE .*I-TYPE"),
        ("b\tPER\n", "line 2: .*'PER'.* O, B-TYPE .*I-TYPE"),
        ("b\tB-\n", "line 2: .*'B-'.* O, B-TYPE"),
        ("b\tO \n", "line 2: .*'O '.* O, B-TYPE"),
        ("b\tI-LOC\n", "line 2: .*'I-LOC' .*'B-PER'.*'B-LOC'"),
        ("b\tO\n\nc\tI-PER\n", "line 4: .*'I-PER' .*'O'.*'B-PER'"),
    ],
)
def test_damage(write, bad, message):
    with pytest.raises(FormatError, match=message):
        list(read_columns(write("a\tB-PER\n" + bad)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\nO\n", "line 1: .* 2 .* tab"),
        ("", "no example"),
        (" \n\t\n", "no example"),
        ("## only a comment\n", "no example"),
        ("1\tAnna\tAnna\tPROPN\tNNP\t_\t0\troot\t_\t_\n", "line 1: .*--columns tag="),  # CoNLL-U
        ("word\ttag\nAnna\tB-PER\n", "line 1: .*names.*--columns tag="),
    ],
)
def test_files_of_something_else(write, content, message):
    with pytest.raises(FormatError, match=rf"data\.txt.*{message}"):
        list(read_columns(write(content)))


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.text(
                    st.characters(codec="utf-8", exclude_characters="\t\n\r\0#0123456789"),
                    min_size=1,
                ),
                st.sampled_from(["O", "B-X", "B-강"]),
            ),
            min_size=1,
        ),
        min_size=1,
    )
)
def test_what_is_written_is_read(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("columns") / "a.conll"
    blocks = ["".join(f"{token}\t{tag}\n" for token, tag in one) for one in sentences]
    path.write_bytes("\n".join(blocks).encode())
    read = read_columns(path)
    assert [list(zip(one.tokens, one.tags, strict=True)) for one in read] == sentences


# --- columns that are not the first and the last --------------------------------------------------

NESTED = ["Am O O", "See O O", "Anna B-PER O", "Rhein I-PER B-LOC"], ["Oslo B-LOC O", "ruht O O"]
"""Words, tags, and the tags of spans inside these."""


def indexed(index_of, separator):
    """NESTED with an index of the number of a sentence, of a word in it, of a word in all."""
    blocks, total = [], 0
    for number, rows in enumerate(NESTED):
        lines = [f"#{separator}https://example.org/{number} [2009-10-17]"]
        for at, row in enumerate(rows):
            lines.append(separator.join([index_of(number, at, total), *row.split()]))
            total += 1
        blocks.append("\n".join([*lines, ""]))
    return "\n".join(blocks)


@pytest.mark.parametrize("separator", ["\t", " "])
@pytest.mark.parametrize(
    "index_of",
    [
        lambda sentence, at, total: str(at + 1),
        lambda sentence, at, total: str(at),
        lambda sentence, at, total: str(total + 1),  # restarts with a document
        lambda sentence, at, total: str(total + 171),
        lambda sentence, at, total: f"{sentence + 1}-{at + 1}",
        lambda sentence, at, total: "1-2" if total == 0 else str(at + 1),  # multiword token
    ],
)
def test_words_that_count_are_refused_and_can_be_named(write, index_of, separator):
    path = write(indexed(index_of, separator))
    with pytest.raises(FormatError, match=r"column 1 .*--columns word=2,tag=3"):
        list(read_columns(path))
    for tag, first in ((3, ("O", "O", "B-PER", "I-PER")), (4, ("O", "O", "O", "B-LOC"))):
        one, other = read_columns(path, columns=Columns(word=2, tag=tag))
        assert (one.tokens, one.tags) == (("Am", "See", "Anna", "Rhein"), first)
        assert other.tokens == ("Oslo", "ruht")


def test_two_columns_with_the_same_types_are_refused(write):
    path = write("\n\n".join("\n".join(rows) for rows in NESTED))
    with pytest.raises(FormatError, match=r"columns 2 and 3 .*--columns word=1,tag=2"):
        list(read_columns(path))
    assert next(read_columns(path, columns=Columns(tag=2))).tags == ("O", "O", "B-PER", "I-PER")


def test_numbers_may_be_words(write):
    path = write("1\tO\n2\tO\n3\tO\n\n1\tO\nof\tO\n2\tO\n")
    assert [one.tokens for one in read_columns(path)] == [("1", "2", "3"), ("1", "of", "2")]
    (years,) = read_columns(write("1984\tB-DAT\n1968\tB-DAT\n2001\tB-DAT\n"))
    assert years.tokens == ("1984", "1968", "2001")


def test_a_tag_need_not_be_last(write):
    path = write("Anna I-PER NNP\n# O #\n\n# I-PER #\nKim I-PER NNP\n")
    assert find_scheme(path, Columns(tag=2)) == "iob1"
    _, second = read_columns(path, columns=Columns(tag=2), scheme="iob1")
    assert (second.tokens, second.tags) == (("#", "Kim"), ("B-PER", "I-PER"))


@pytest.mark.parametrize("columns", [Columns(word=3), Columns(tag=3), Columns(word=2)])
def test_a_column_that_is_not_there(write, columns):
    with pytest.raises(FormatError, match=r"line 1: 2 columns.*word=.*--columns"):
        list(read_columns(write("a O\n"), columns=columns))


# --- characters -----------------------------------------------------------------------------------

TEXT = "김민수는 서울 시청에 갔다."
TOKENS = ["김민수", "는", "서울", "시청", "에", "가", "었", "다", "."]
ENTITIES = [("PS", 0, 3), ("LC", 5, 10)]
TASK = NerTask(units="characters")


@pytest.fixture
def read(write):
    def read(text, entities, tokens):
        tags = ["O"] * len(text)
        for kind, start, end in entities:
            tags[start:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - start - 1)]
        rows = "".join(f"{one}\t{tag}\n" for one, tag in zip(text, tags, strict=True))
        path = write(f"## name\t{text}\n{rows}\n")
        (example,) = TASK.read(path, training=True, tokenize=lambda _: tokens)
        return example

    return read


def test_characters_become_tokens_and_their_tags_go_with_them(read):
    example = read(TEXT, ENTITIES, TOKENS)
    assert (example.text, example.tokens) == (TEXT, tuple(TOKENS))
    assert example.tags[:5] == ("U-PS", "O", "B-LC", "L-LC", "O")
    assert read_spans(TASK.gold(example)) == ENTITIES
    assert TASK.in_units_of_gold(example, list(example.tags)) == TASK.gold(example)


def test_an_entity_inside_a_token_is_taught_but_cannot_be_found(read):
    """A tagger that is right about all tokens has one of two: 북미 is no LC as a whole."""
    example = read("북미는 서울", [("LC", 0, 1), ("LC", 4, 6)], ["북미", "는", "서울"])
    assert example.tags == ("U-LC", "O", "U-LC")
    answer = TASK.in_units_of_gold(example, list(example.tags))
    assert TASK.score([TASK.gold(example)], [answer]).value == 50


def test_tokens_that_share_characters_give_spans_that_do_not():
    """갔다 is 가, 었, 다 in the same two characters; a token without characters is in no span."""
    offsets = ((0, 2), (0, 2), (0, 2), (3, 5))
    spans = [("A", 0, 1), ("B", 1, 3), ("C", 3, 4)]
    assert spans_of_characters(spans, offsets) == [("A", 0, 2), ("C", 3, 5)]
    assert spans_of_tokens([("A", 0, 1), ("B", 1, 2)], offsets) == [("A", 0, 3)]
    assert spans_of_tokens([("A", 0, 4)], ((0, 2), (2, 2), (2, 4))) == [("A", 0, 3)]
    assert spans_of_tokens([("A", 0, 2)], ((0, 2), (2, 2), (2, 4))) == [("A", 0, 1)]


@pytest.mark.parametrize(
    ("content", "tokens", "message"),
    [
        ("I\tO\nsat\tO\n\n", [], r"line 1: .*'sat'.* KLUE-NER.*units=words"),
        ("가\tO\n나\tO\n" * 60, ["다른", "말"] * 50, "cannot be found"),
    ],
)
def test_what_is_not_in_characters_is_refused(write, content, tokens, message):
    with pytest.raises(FormatError, match=message):
        list(read_characters(write(content), lambda text: tokens))
