"""Treebanks in ten columns."""

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.formats.conllu import read_conllu


def row(number, word, tag="NOUN", *, lemma="_", xpos="_", deprel="_"):
    return f"{number}\t{word}\t{lemma}\t{tag}\t{xpos}\t_\t0\t{deprel}\t_\t_\n"


class TestConllu:
    def test_sentences_with_comments(self, write):
        path = write(
            "#newpar\n#sent_id=a-1\n# text = 강이 = 길다.\n"
            + row(1, "강이", xpos="NNG+JKS")
            + row(2, "길다.", "ADJ", xpos="VA+EF")
            + "\n"
            + row(1, "Rain", "NOUN")
        )
        first, second = read_conllu(path)
        assert (first.tokens, first.tags) == (("강이", "길다."), ("NOUN", "ADJ"))
        assert first.location.line == 4
        assert (second.tokens, second.location.line) == (("Rain",), 7)

    def test_multiword_tokens_and_empty_nodes_are_passed_over(self, write):
        path = write(
            "0.1\t_" + "\t_" * 8 + "\n1-2\tdon't" + "\t_" * 8 + "\n"
            + row(1, "do", "AUX") + row(2, "n't", "PART") + "2.1\tgo" + "\t_" * 8 + "\n\n"
        )  # fmt: skip
        (sentence,) = read_conllu(path)
        assert sentence.tokens == ("do", "n't")
        assert sentence.tags == ("AUX", "PART")

    @pytest.mark.parametrize(
        ("column", "tag"), [("upos", "NOUN"), ("xpos", "nq"), ("lemma", "강"), ("deprel", "root")]
    )
    def test_the_column_is_chosen(self, write, column, tag):
        path = write(row(1, "강이", lemma="강", xpos="nq", deprel="root"))
        (sentence,) = read_conllu(path, column=column)
        assert sentence.tags == (tag,)

    def test_an_underscore_is_a_word_and_a_lemma(self, write):
        (sentence,) = read_conllu(write(row(1, "_", "SYM")), column="lemma")
        assert (sentence.tokens, sentence.tags) == (("_",), ("_",))

    def test_a_comment_by_itself_belongs_to_no_sentence(self, write):
        (sentence,) = read_conllu(write("# text = lost\n\n\n" + row(1, "Rain") + "\n# end\n"))
        assert sentence.tokens == ("Rain",)

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            (row(2, "b")[:-3] + "\n", "line 2: 9 .* 10, .* tabs"),
            (row(2, "b").replace("\t", " "), "line 2: 1 .* 10, .* tabs"),
            (row(3, "b"), "line 2: .* 2 .*'3'"),
            (row(1, "b"), "line 2: .* 2 .*'1'"),
            (row("9" * 5000, "b"), "line 2: .* 2 .*'999"),
            (row("two", "b"), "line 2: .* 2 .*'two'"),
            (row(2, " "), r"line 2: .*column 2\b"),
            (row(2, "b", "NUON"), "line 2: .*'NUON' .*'upos'; .*NOUN"),
            (row(2, "b", "_"), r"line 2: .* tag .*'upos'\."),
            (row(2, "b", ""), r"line 2: .* tag .*'upos'\."),
            ("# text = inside\n", "line 2: 1 .* 10, .* tabs"),
        ],
    )
    def test_damage(self, write, bad, message):
        with pytest.raises(FormatError, match=message):
            list(read_conllu(write(row(1, "a") + bad)))

    def test_universal_tags_are_a_closed_list(self, write):
        path = write(row(1, "a", "NN", xpos="nq"))
        with pytest.raises(FormatError, match=r"line 1: .*'NN' .*'upos'; .*: ADJ, ADP"):
            list(read_conllu(path))
        assert next(read_conllu(path, column="xpos")).tags == ("nq",)

    def test_a_sentence_of_nothing_but_multiword_tokens(self, write):
        with pytest.raises(FormatError, match=r"line 1: .* words"):
            list(read_conllu(write("1-2\tim" + "\t_" * 8 + "\n\n")))

    @pytest.mark.parametrize("content", ["", "\n\n", "# text = nothing\n"])
    def test_files_without_sentences(self, write, content):
        with pytest.raises(FormatError, match=r"/data\.txt: .*\bempty\b"):
            list(read_conllu(write(content)))

    def test_a_missing_file_is_told_at_once(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_conllu(tmp_path / "absent.conllu")
