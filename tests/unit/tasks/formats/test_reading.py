"""Checks, counts and limits, which all readers of task data share."""

from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.files.location import Location
from elmokit.tasks.formats.reading import ExampleReport, read_examples

PATH = Path("train.tsv")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / PATH).touch()
    monkeypatch.chdir(tmp_path)


def read(report, items, **settings):
    """Hand on whole numbers; those below zero are faults, None has no gold label."""

    def examples(path, report):
        for line, item in enumerate(items, 1):
            location = Location(path=PATH, line=line)
            if item is None:
                report.skip("no_gold_label", location)
            elif item < 0:
                report.skip("empty_text", location)
            else:
                yield item

    return list(read_examples(PATH, examples, report, **settings))


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
        with pytest.raises(
            FormatError, match=r"train\.tsv: 1 of 19 .* 0\.05 .*empty_text: 1 .*line 19\b"
        ):
            read(report, [1] * 18 + [-1])

    def test_missing_gold_labels_are_no_faults(self, report):
        assert read(report, [1, None, None]) == [1]
        assert report.skipped == {"no_gold_label": 2}
        assert report.num_faults == 0

    def test_nothing_at_all_is_an_error(self, report):
        with pytest.raises(FormatError, match=r"train\.tsv: .*\bempty\b"):
            read(report, [])

    def test_nothing_left_is_an_error_however_much_may_be_skipped(self, report):
        with pytest.raises(FormatError, match=r"train\.tsv: .*no_gold_label: 1 .*line 1\b"):
            read(report, [None])
        with pytest.raises(FormatError, match=r"train\.tsv: .*empty_text: 1 .*line 1\b"):
            read(ExampleReport(max_skipped_share=1), [-1])

    def test_each_file_is_judged_by_itself(self, report):
        report.max_skipped_share = 0.5
        read(report, [-1] * 5 + [1] * 5)
        report.max_skipped_share = 0.05
        assert read(report, [7] * 4) == [7] * 4
        assert (report.examples, report.num_faults) == (9, 5)
        with pytest.raises(FormatError, match=r"train\.tsv: 1 of 2 .* 0\.05 .*empty_text: 6 "):
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


class TestArguments:
    def test_a_missing_file_is_named_at_once(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"task data .*/absent\.tsv"):
            read_examples(tmp_path / "absent.tsv", lambda path, report: iter([]), None)

    @pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
    def test_the_share_must_be_one(self, share):
        with pytest.raises(InputError, match=rf"`max_skipped_share` .*\b0 .*\b1 .* {share}\."):
            ExampleReport(max_skipped_share=share)
