"""Tagged sentences in columns."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import FormatError
from elmokit.tasks.formats.columns import Columns
from elmokit.tasks.formats.conll import find_scheme, read_columns


class TestColumns:
    def test_tabs(self, write):
        path = write("Mina\tB-PER\nKim\tI-PER\nsings\tO\n\nSeoul\tB-LOC\n")
        first, second = read_columns(path)
        assert first.tokens == ("Mina", "Kim", "sings")
        assert first.tags == ("B-PER", "I-PER", "O")
        assert (second.tokens, second.location.line) == (("Seoul",), 5)

    def test_spaces_and_more_columns(self, write):
        path = write("Mina NNP  B-NP B-PER\nsings VBZ B-VP O\n")
        (sentence,) = read_columns(path)
        assert (sentence.tokens, sentence.tags) == (("Mina", "sings"), ("B-PER", "O"))

    def test_tokens_keep_their_spaces_between_tabs(self, write):
        (sentence,) = read_columns(write("New York\tB-LOC\n \tO\n"))
        assert sentence.tokens == ("New York", " ")

    def test_a_hash_is_a_token_unless_a_space_follows_at_the_start(self, write):
        path = write("## id-7\t<강:LOC>가\n# text = 강가\n#\tO\n#강\tB-LOC\n")
        (sentence,) = read_columns(path)
        assert sentence.tokens == ("#", "#강")

    def test_a_hash_may_begin_a_file_of_many_columns(self, write):
        path = write("# the O\n# NN O B-ORG\nMeToo NN O I-ORG\n\n# NN O O\nok JJ O O\n")
        first, second = read_columns(path)
        assert (first.tokens, first.tags) == (("#", "MeToo"), ("B-ORG", "I-ORG"))
        assert second.tokens == ("#", "ok")
        (sentence,) = read_columns(write("# = B-ORG\nMeToo NN I-ORG\n"))
        assert sentence.tokens == ("#", "MeToo")

    @pytest.mark.parametrize(
        "comment", ["# The tags are B-PER and O", "# outside is O", "# Vitamin B-12", "#", "## 1"]
    )
    def test_a_comment_may_end_like_a_row(self, write, comment):
        (sentence,) = read_columns(write(f"{comment}\nRain B-PER\nfalls O\n\n{comment}\n"))
        assert sentence.tokens == ("Rain", "falls")

    def test_document_marks_are_no_words(self, write):
        path = write("-DOCSTART- -X- O O\n\nRain NN B-NP O\n\n-DOCSTART- -X- O O\nSun NN B-NP O\n")
        assert [sentence.tokens for sentence in read_columns(path)] == [("Rain",), ("Sun",)]

    def test_iob1_becomes_iob2(self, write):
        path = write("a I-PER\nb I-PER\nc B-PER\nd I-LOC\ne O\nf I-LOC\n\ng I-LOC\n")
        first, second = read_columns(path, scheme="iob1")
        assert first.tags == ("B-PER", "I-PER", "B-PER", "B-LOC", "O", "B-LOC")
        assert second.tags == ("B-LOC",)

    def test_iobes_becomes_iob2(self, write):
        path = write("a B-PER\nb I-PER\nc E-PER\nd S-LOC\ne S-LOC\n\nf U-LOC\ng O\n")
        first, second = read_columns(path, scheme="bioul")
        assert first.tags == ("B-PER", "I-PER", "I-PER", "B-LOC", "B-LOC")
        assert second.tags == ("B-LOC", "O")

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
    def test_the_scheme_of_a_file(self, write, tags, scheme):
        rows = "".join(f"w {tag}\n" for tag in tags.split())
        assert find_scheme(write(rows)) == scheme

    def test_a_hash_with_a_tag_is_a_word_between_spaces(self, write):
        path = write("# a comment\n# 2\n# B-PER\nx I-PER\n\n# O\nwinning O\n")
        assert [one.tokens for one in read_columns(path)] == [("#", "x"), ("#", "winning")]

    def test_rows_for_spaces_can_be_dropped(self, write, report):
        path = write(
            "해\t해\tNNG\tB-PER\n_\t_\t_\tI-PER\n달\t달\tNNG\tI-PER\n_\t_\tSW\tO\n"
            "_\t_\t_\tB-LOC\n별\t별\tNNG\tI-LOC\n"
        )
        (sentence,) = read_columns(path, spaces="drop", report=report)
        assert sentence.tokens == ("해", "달", "_", "별")
        assert sentence.tags == ("B-PER", "I-PER", "O", "B-LOC")
        assert report.repaired == {"tag_moved": 1}
        (sentence,) = read_columns(path)
        assert len(sentence.tokens) == 6

    def test_characters_with_spaces(self, write):
        path = write("강\tB-LOC\n \tO\n물\tO\n")
        (sentence,) = read_columns(path, spaces="drop")
        assert sentence.tokens == ("강", "물")

    def test_a_sentence_with_an_empty_token_is_skipped(self, write, report):
        path = write("a\tO\n\tO\n\nb\tO\n")
        report.max_skipped_share = 0.5
        (sentence,) = read_columns(path, report=report)
        assert sentence.tokens == ("b",)
        assert report.skipped == {"empty_token": 1}
        with pytest.raises(
            FormatError, match=r"data\.txt: 1 of 2 .* 0\.05 .*empty_token: 1 .*line 1\b"
        ):
            list(read_columns(path))

    def test_a_sentence_of_spaces_alone_is_skipped(self, write, report):
        path = write(" \tO\n\nb\tO\n")
        report.max_skipped_share = 0.5
        list(read_columns(path, spaces="drop", report=report))
        assert report.skipped == {"empty_sentence": 1}

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ("b\n", r"line 2: 1 .* 2\b"),
            ("b\tX\tO\n", r"line 2: 3 .* 2\b"),
            ("b O\n", "line 2: 1 .* 2.* tab"),
            ("b\t\n", "line 2: .*''.* O, B-TYPE .*I-TYPE"),
            ("b\tPER\n", "line 2: .*'PER'.* O, B-TYPE .*I-TYPE"),
            ("b\tB-\n", "line 2: .*'B-'.* O, B-TYPE"),
            ("b\tO \n", "line 2: .*'O '.* O, B-TYPE"),
            ("b\tI-LOC\n", "line 2: .*'I-LOC' .*'B-PER'.*'B-LOC'"),
            ("b\tO\n\nc\tI-PER\n", "line 4: .*'I-PER' .*'O'.*'B-PER'"),
        ],
    )
    def test_damage(self, write, bad, message):
        with pytest.raises(FormatError, match=message):
            list(read_columns(write("a\tB-PER\n" + bad)))

    def test_a_file_of_one_column_has_no_tags(self, write):
        with pytest.raises(FormatError, match=r"line 1: .* one .* tab\b"):
            list(read_columns(write("a\nO\n")))

    @pytest.mark.parametrize("content", ["", " \n\t\n", "## only a comment\n"])
    def test_files_without_sentences(self, write, content):
        with pytest.raises(FormatError, match=r"/data\.txt: .*\bempty\b"):
            list(read_columns(write(content)))

    @pytest.mark.usefixtures("without_type_checks")
    def test_a_sentence_of_50000_words(self, write):
        path = write("강\tB-LOC\n물\tI-LOC\n" * 25_000)
        begin = time.process_time()
        (sentence,) = read_columns(path)
        assert len(sentence.tokens) == 50_000
        assert time.process_time() - begin < 30  # a square of it takes minutes

    @pytest.mark.parametrize("first", ["I-O", "B-O", "S-O"])
    @pytest.mark.parametrize("scheme", ["iob1", "iob2", "bioul"])
    def test_a_type_o_is_refused(self, write, scheme, first):
        with pytest.raises(FormatError, match=rf"line 2: .*'{first}'.* not be O"):
            list(read_columns(write(f"a\tO\nb\t{first}\n"), scheme=scheme))
        (sentence,) = read_columns(write("a\tB-OO\nb\tI-OO\n"), scheme=scheme)
        assert sentence.tags == ("B-OO", "I-OO")

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
    def test_what_is_written_is_read(self, tmp_path_factory, sentences):
        path = tmp_path_factory.mktemp("columns") / "a.conll"
        blocks = ["".join(f"{token}\t{tag}\n" for token, tag in one) for one in sentences]
        path.write_bytes("\n".join(blocks).encode())
        read = read_columns(path)
        words = [list(zip(one.tokens, one.tags, strict=True)) for one in read]
        assert words == sentences


NESTED = ["Am O O", "See O O", "Anna B-PER O", "Rhein I-PER B-LOC"], ["Oslo B-LOC O", "ruht O O"]
"""Words, tags, and the tags of spans inside these."""


def indexed(index_of, *, separator="\t"):
    """NESTED with an index of the number of a sentence, of a word in it, of a word in all."""
    blocks, total = [], 0
    for number, rows in enumerate(NESTED):
        lines = [f"#{separator}https://example.org/{number} [2009-10-17]"]
        for at, row in enumerate(rows):
            lines.append(separator.join([index_of(number, at, total), *row.split()]))
            total += 1
        blocks.append("\n".join([*lines, ""]))
    return "\n".join(blocks)


class TestChosenColumns:
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
    def test_words_that_count_are_refused_and_can_be_named(self, write, index_of, separator):
        path = write(indexed(index_of, separator=separator))
        with pytest.raises(FormatError, match=r"column 1 .*--columns word=2,tag=3"):
            list(read_columns(path))
        for tag, first in ((3, ("O", "O", "B-PER", "I-PER")), (4, ("O", "O", "O", "B-LOC"))):
            one, other = read_columns(path, columns=Columns(word=2, tag=tag))
            assert (one.tokens, one.tags) == (("Am", "See", "Anna", "Rhein"), first)
            assert other.tokens == ("Oslo", "ruht")

    def test_two_columns_with_the_same_types_are_refused(self, write):
        path = write("\n\n".join("\n".join(rows) for rows in NESTED))
        with pytest.raises(FormatError, match=r"columns 2 and 3 .*--columns word=1,tag=2"):
            list(read_columns(path))
        one, _ = read_columns(path, columns=Columns(tag=2))
        assert one.tags == ("O", "O", "B-PER", "I-PER")
        chunks = write("Mina NNP B-NP B-PER\nsings VBZ B-VP O\n")
        assert next(read_columns(chunks)).tags == ("B-PER", "O")

    def test_numbers_may_be_words(self, write):
        path = write("1\tO\n2\tO\n3\tO\n\n1\tO\nof\tO\n2\tO\n")
        assert [one.tokens for one in read_columns(path)] == [("1", "2", "3"), ("1", "of", "2")]
        (years,) = read_columns(write("1984\tB-DAT\n1968\tB-DAT\n2001\tB-DAT\n"))
        assert years.tokens == ("1984", "1968", "2001")

    @pytest.mark.parametrize(
        "rows",
        [
            "1\tAnna\tAnna\tPROPN\tNNP\t_\t0\troot\t_\t_\n",  # CoNLL-U
            "word\ttag\nAnna\tB-PER\n",
            "Anna B-PER NNP\n",
        ],
    )
    def test_a_first_row_without_a_tag_names_the_ways_out(self, write, rows):
        with pytest.raises(FormatError, match=r"line 1: ill-formed .*names.*--columns tag="):
            list(read_columns(write(rows)))

    def test_a_tag_need_not_be_last(self, write):
        path = write("Anna I-PER NNP\n# O #\n\n# I-PER #\nKim I-PER NNP\n")
        assert find_scheme(path, Columns(tag=2)) == "iob1"
        _, second = read_columns(path, columns=Columns(tag=2), scheme="iob1")
        assert (second.tokens, second.tags) == (("#", "Kim"), ("B-PER", "I-PER"))

    def test_a_column_that_is_not_there(self, write):
        for columns in (Columns(word=3), Columns(tag=3), Columns(word=2)):  # 2 holds the tags
            with pytest.raises(FormatError, match=r"line 1: 2 columns.*word=.*--columns"):
                list(read_columns(write("a O\n"), columns=columns))
