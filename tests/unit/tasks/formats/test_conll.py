"""Tagged sentences in columns."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import FormatError
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

    @given(
        st.lists(
            st.lists(
                st.tuples(
                    st.text(
                        st.characters(codec="utf-8", exclude_characters="\t\n\r\0#"), min_size=1
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
