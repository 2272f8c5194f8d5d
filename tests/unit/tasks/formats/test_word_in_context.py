"""The same word in two texts."""

import json

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.formats.word_in_context import read_kobest_wic, read_wic

PAIR = {
    "lemma": "bank",
    "sentence1": "The bank rose.",
    "start1": 4,
    "end1": 8,
    "sentence2": "Banks lend.",
    "start2": 0,
    "end2": 5,
    "label": False,
}


class TestWordInContext:
    @pytest.fixture
    def read(self, write):
        def read(*pairs, **settings):
            lines = "".join(json.dumps(pair) + "\n" for pair in pairs)
            return list(read_wic(write(lines, name="a.jsonl"), **settings))

        return read

    def test_spans(self, read):
        (pair,) = read(PAIR)
        words = [one.text[one.start : one.end] for one in (pair.first, pair.second)]
        assert words == ["bank", "Banks"]
        assert (pair.lemma, pair.same_sense, pair.location.line) == ("bank", False, 1)

    @pytest.mark.parametrize(
        "change", [{"end1": 15}, {"start1": 8}, {"start1": -1}, {"start2": 9, "end2": 2}]
    )
    def test_spans_outside_the_text_are_skipped(self, read, report, change):
        pairs = [PAIR, {**PAIR, **change}]
        report.max_skipped_share = 0.5
        assert len(read(*pairs, report=report)) == 1
        assert report.skipped == {"target_not_in_text": 1}
        with pytest.raises(
            FormatError, match=r"a\.jsonl: 1 of 2 .*target_not_in_text: 1 .*line 2\b"
        ):
            read(*pairs)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"label": "maybe"}, "line 2: .*'label' .*true .*false, .*'maybe'"),
            ({"start1": None}, "line 2: .*'start1' .* None"),
            ({"sentence2": None}, "line 2: .*'sentence2' .* None"),
        ],
    )
    def test_damage(self, read, change, message):
        with pytest.raises(FormatError, match=message):
            read(PAIR, {**PAIR, **change})

    def test_an_empty_file(self, read):
        with pytest.raises(FormatError, match=r"/a\.jsonl: .*\bempty\b"):
            read()


class TestMarkedWords:
    HEADER = "ID\tTarget\tSENTENCE1\tLink 1\tSENTENCE2\tANSWER"

    @pytest.fixture
    def read(self, write):
        def read(*rows, **settings):
            content = "\r\n".join([self.HEADER, *rows])
            return list(read_kobest_wic(write(content, name="a.tsv"), **settings))

        return read

    def test_marks_become_spans(self, read):
        (pair,) = read("1\t배\t강에 [배]가 떴다.\t-\t[배]를 깎다.\tFALSE")
        # 강에 + space = 3 characters before the word
        assert (pair.first.text, pair.first.start, pair.first.end) == ("강에 배가 떴다.", 3, 4)
        assert (pair.second.text, pair.second.start, pair.second.end) == ("배를 깎다.", 0, 1)
        assert (pair.lemma, pair.same_sense) == ("배", False)

    def test_of_several_marks_the_first_counts(self, read, report):
        (pair,) = read("1\t배\t[배]는 [배]다.\t-\t[배]를 깎다.\tTrue", report=report)
        assert (pair.first.text, pair.first.start) == ("배는 배다.", 0)
        assert pair.same_sense
        assert report.repaired == {"several_targets": 1}

    @pytest.mark.parametrize("text", ["배가 떴다.", "[배가 떴다.", "배]가", "[]배가", "[ ]배가"])
    def test_texts_without_mark_are_skipped(self, read, report, text):
        rows = ["1\t배\t[배]\t-\t[배]\tTrue", f"2\t배\t{text}\t-\t[배]\tTrue"]
        report.max_skipped_share = 0.5
        assert len(read(*rows, report=report)) == 1
        assert report.skipped == {"target_not_in_text": 1}
        with pytest.raises(FormatError, match=r"a\.tsv: 1 of 2 .*target_not_in_text: 1 .*line 3\b"):
            read(*rows)

    def test_an_answer_that_is_none(self, read):
        with pytest.raises(FormatError, match=r"line 2: .*'ANSWER' .*true .*false, .*'2'"):
            read("1\t배\t[배]\t-\t[배]\t2")
