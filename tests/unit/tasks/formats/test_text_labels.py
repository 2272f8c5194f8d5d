"""Texts with a label, and sentiment trees."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import FormatError, InputError
from elmokit.tasks.formats.text_labels import read_sentiment_trees, read_text_labels


class TestRecords:
    def test_a_table(self, write):
        path = write('id\tdocument\tlabel\n1\t"별로예요\t0\n2\t최고 !\t1\n', name="a.tsv")
        first, second = read_text_labels(path, text="document", labels=("0", "1"))
        assert (first.text, first.label, first.tokens) == ('"별로예요', "0", None)
        assert (second.text, second.label, second.location.line) == ("최고 !", "1", 3)

    def test_json_lines(self, write):
        line = json.dumps({"text": "Two\nlines", "label": 1, "more": None})
        (example,) = read_text_labels(write(line, name="a.jsonl"))
        assert (example.text, example.label) == ("Two\nlines", "1")

    def test_blank_texts_are_faults_and_missing_labels_are_none(self, write, report):
        path = write("text\tlabel\na\t1\n \t1\nb\t\n", name="a.tsv")
        report.max_skipped_share = 0.5
        assert len(list(read_text_labels(path, report=report))) == 1
        assert report.skipped == {"empty_text": 1, "no_gold_label": 1}
        assert report.num_faults == 1
        with pytest.raises(
            FormatError, match=r"a\.tsv: 1 of 2 .* 0\.05 .*empty_text: 1 .*line 3\b"
        ):
            list(read_text_labels(path))

    def test_unknown_labels(self, write):
        path = write("text\tlabel\na\t1\nb\t2\n", name="a.tsv")
        with pytest.raises(FormatError, match=r"line 3: .*'2' .*'label'; .*: 0, 1"):
            list(read_text_labels(path, labels=("0", "1")))

    def test_a_column_that_is_not_there(self, write):
        path = write("id\tdocument\n1\ta\n", name="a.tsv")
        with pytest.raises(FormatError, match=r"line 2: .*'text'; .*: id, document"):
            list(read_text_labels(path))

    @pytest.mark.usefixtures("without_type_checks")
    def test_a_text_of_50000_words(self, write):
        path = write("text\tlabel\n" + "강 " * 50_000 + "\t1\n", name="a.tsv")
        begin = time.process_time()
        (example,) = read_text_labels(path)
        assert len(example.text.split()) == 50_000
        assert time.process_time() - begin < 30


TREE = "(3 (2 (2 A) (1 (1 slow) (2 river))) (4 (4 shines) (2 .)))"


class TestTrees:
    def test_the_root_is_the_sentence(self, write):
        first, second = read_sentiment_trees(write(f"{TREE}\n\n(0 No)\n"))
        assert first.tokens == ("A", "slow", "river", "shines", ".")
        assert (first.text, first.label) == ("A slow river shines .", "3")
        assert (second.tokens, second.label, second.location.line) == (("No",), "0", 3)

    @pytest.mark.parametrize(
        ("least", "phrases"),
        [
            (1, ["A slow river", "A", "slow river", "slow", "river", "shines .", "shines", "."]),
            (2, ["A slow river", "slow river", "shines ."]),
            (3, ["A slow river"]),
            (4, []),
            (9, []),
        ],
    )
    def test_phrases_follow_their_sentence(self, write, least, phrases):
        examples = list(read_sentiment_trees(write(TREE), min_phrase_tokens=least))
        assert [one.text for one in examples] == ["A slow river shines .", *phrases]
        labels = {one.text: one.label for one in examples}
        assert labels.get("slow river", "1") == "1"
        assert labels.get("shines .", "4") == "4"

    def test_escapes_are_turned_back(self, write):
        (example,) = read_sentiment_trees(write(r"(2 (2 -LRB-) (2 (2 1\/2) (2 -rrb-)))"))
        assert example.tokens == ("(", "1/2", "-rrb-")

    def test_nodes_may_have_one_or_three_parts_and_words_odd_spaces(self, write):
        (example,) = read_sentiment_trees(write("(2 (2 (2 강)) (2 1\xa0/2) (2 b))"))
        assert example.tokens == ("강", "1\xa0/2", "b")

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("(2 (2 a) (2 b)", r" 14\."),
            ("(2 (2 a) (2 b)))", r" '\)' .* 15\."),
            ("(2 a) (2 b)", r" 6\."),
            ("(5 a)", r" '5' .*0 .* 4.* 1\."),
            ("((2 a))", r" '\(' .*0 .* 4.* 1\."),
            ("(2 )", r" 3\."),
            ("(2 (2 ) (2 a))", r" 6\."),
            ("(", r" 1\."),
            ("3 a b", r" '3' .* 0\."),
            ("+\ta fine text", r" '\+\\ta' .* 0\."),
        ],
    )
    def test_damage(self, write, line, message):
        with pytest.raises(FormatError, match=f"line 2: .*{message} "):
            list(read_sentiment_trees(write(f"(2 a)\n{line}\n")))

    def test_phrases_have_words(self, write):
        with pytest.raises(InputError, match=r"`min_phrase_tokens` .*\b1, .*\b0\b"):
            read_sentiment_trees(write(TREE), min_phrase_tokens=0)

    @pytest.mark.parametrize("content", ["", "\n \n"])
    def test_files_without_trees(self, write, content):
        with pytest.raises(FormatError, match=r"/data\.txt: .*\bempty\b"):
            list(read_sentiment_trees(write(content)))

    @pytest.mark.usefixtures("without_type_checks")
    def test_a_tree_as_deep_as_its_50000_words(self, write):
        path = write("(2 (2 강) " * 49_999 + "(3 끝)" + ")" * 49_999)
        begin = time.process_time()
        (example,) = read_sentiment_trees(path)
        assert len(example.tokens) == 50_000
        assert time.process_time() - begin < 30

    @given(
        st.recursive(
            st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1).map(
                lambda word: ("2", [word])
            ),
            lambda parts: st.tuples(st.sampled_from("01234"), st.lists(parts, min_size=1)),
        )
    )
    def test_words_and_nodes_survive(self, tmp_path_factory, tree):
        def written(node):
            label, parts = node
            inside = (one if isinstance(one, str) else written(one) for one in parts)
            return f"({label} {' '.join(inside)})"

        def nodes(node):
            label, parts = node
            below = [[(None, [one])] if isinstance(one, str) else nodes(one) for one in parts]
            words = [word for one in below for word in one[0][1]]
            return [(label, words)] + [one for part in below for one in part if one[0] is not None]

        path = tmp_path_factory.mktemp("trees") / "a.txt"
        path.write_bytes(written(tree).encode())
        read = [
            (one.label, list(one.tokens)) for one in read_sentiment_trees(path, min_phrase_tokens=1)
        ]
        assert read == nodes(tree)
