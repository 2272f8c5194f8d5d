"""Places, counts and limits, which all readers of task data share."""

import gzip
import lzma
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.tasks.formats.reading import (
    ExampleReport,
    Location,
    check_arguments,
    checked,
    numbered_lines,
    read_text,
    shown,
)

PATH = Path("train.tsv")


def read(report, items, *, max_skipped_share=0.05, **settings):
    """Hand on whole numbers; those below zero are faults, None has no gold label."""

    def examples():
        for line, item in enumerate(items, 1):
            location = Location(path=PATH, line=line)
            if item is None:
                report.skip("no_gold_label", location)
            elif item < 0:
                report.skip("empty_text", location)
            else:
                yield item

    return list(checked(PATH, examples(), report, max_skipped_share=max_skipped_share, **settings))


class TestChecked:
    def test_examples_pass_and_are_counted(self, report):
        assert read(report, [3, 1, 2]) == [3, 1, 2]
        assert report.examples == 3
        assert report.describe() == "nothing skipped"

    def test_a_share_at_the_limit_is_allowed(self, report, caplog):
        # 1 of 19 + 1 = 5 %
        assert len(read(report, [1] * 19 + [-1])) == 19
        assert "train.tsv, line 20" in caplog.text
        assert report.num_faults == 1

    def test_a_share_above_the_limit_is_an_error(self, report):
        # 1 of 18 + 1 = 5.3 %
        with pytest.raises(FormatError, match=r"train.tsv: 1 of 19 examples .* empty_text: 1"):
            read(report, [1] * 18 + [-1])

    def test_missing_gold_labels_are_no_faults(self, report):
        assert read(report, [1, None, None]) == [1]
        assert report.skipped == {"no_gold_label": 2}
        assert report.num_faults == 0

    def test_nothing_at_all_is_an_error(self, report):
        with pytest.raises(FormatError, match=r"no example in the file .it is empty or blank"):
            read(report, [])

    def test_nothing_left_is_an_error_however_much_may_be_skipped(self, report):
        with pytest.raises(FormatError, match=r"no example in the file .skipped: no_gold_label: 1"):
            read(report, [None])
        with pytest.raises(FormatError, match="no example in the file"):
            read(report, [-1], max_skipped_share=1)

    def test_each_file_is_judged_by_itself(self, report):
        read(report, [-1] * 5 + [1] * 5, max_skipped_share=0.5)
        assert read(report, [7] * 4) == [7] * 4
        assert (report.examples, report.num_faults) == (9, 5)
        with pytest.raises(FormatError, match="1 of 2 examples"):
            read(report, [7, -1])

    def test_an_item_may_stand_for_several_examples(self, report):
        # 19 words and one fault: 5 % of 20
        read(report, [9, 10, -1], size=lambda item: item)
        assert report.examples == 19


def test_the_first_place_of_each_reason_is_kept(report):
    for line in (4, 9):
        report.skip("no_answer", Location(path=PATH, line=line))
    assert "no_answer: 2 (first: train.tsv, line 4)" in report.describe()


def test_reports_do_not_share_their_counts():
    one, other = ExampleReport(), ExampleReport()
    one.skip("no_answer", Location(path=PATH))
    assert other.skipped.total() == 0


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, "train.tsv"),
        ({"line": 7}, "train.tsv, line 7"),
        ({"part": "data[0]"}, "train.tsv, data[0]"),
        ({"line": 2, "part": "predicates[1]"}, "train.tsv, line 2, predicates[1]"),
    ],
)
def test_a_place_in_words(parts, text):
    assert str(Location(path=PATH, **parts)) == text
    assert str(Location(path=PATH, **parts).error("broken.")) == f"{text}: broken."


class TestArguments:
    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no task data at .*absent.tsv"):
            check_arguments(tmp_path / "absent.tsv", 0.05)

    def test_a_directory_is_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="Give one file"):
            check_arguments(tmp_path, 0.05)

    @pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
    def test_the_share_must_be_one(self, write, share):
        with pytest.raises(InputError, match=r"between 0 .* and 1"):
            check_arguments(write("a"), share)


class TestLines:
    TEXT = "하나\n\n둘 \n"

    @pytest.mark.parametrize("ending", ["\n", "\r\n"])
    def test_lines_have_numbers_and_no_ends(self, write, ending):
        path = write(self.TEXT.replace("\n", ending))
        assert list(numbered_lines(path)) == [(1, "하나"), (2, ""), (3, "둘 ")]

    @pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("xz", lzma.compress)])
    def test_compressed_text(self, write, suffix, compress):
        path = write(compress(self.TEXT.encode()), name=f"a.txt.{suffix}")
        assert [line for _, line in numbered_lines(path)] == ["하나", "", "둘 "]
        assert read_text(path) == self.TEXT

    def test_a_cut_compressed_file(self, write):
        path = write(lzma.compress(self.TEXT.encode() * 99)[:-20], name="a.txt.xz")
        with pytest.raises(FormatError, match="damaged or cut"):
            list(numbered_lines(path))

    def test_only_line_feeds_end_lines(self, write):
        text = "a\u2028b\x0bc\x85d"
        assert list(numbered_lines(write(text))) == [(1, text)]

    def test_a_byte_order_mark_is_taken_off_at_the_start_alone(self, write):
        path = write("\ufeffa\n\ufeffb\n")
        assert list(numbered_lines(path)) == [(1, "a"), (2, "\ufeffb")]
        assert read_text(path) == "a\n\ufeffb\n"

    def test_other_encodings_are_named(self, write):
        path = write("한국어\n".encode() + "안녕하세요 여러분 반갑습니다".encode("cp949"))
        with pytest.raises(FormatError, match=r"line 2: the text is not UTF-8 .* CP949"):
            list(numbered_lines(path))
        with pytest.raises(FormatError, match="not UTF-8"):
            read_text(path)

    def test_nul_bytes(self, write):
        with pytest.raises(FormatError, match="line 2: the text holds a NUL"):
            list(numbered_lines(write("a\nb\0\n")))


def test_long_values_are_cut_in_messages():
    assert shown("short") == "'short'"
    assert shown("x" * 999) == "'" + "x" * 56 + "..."
