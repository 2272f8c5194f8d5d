"""The same word in two texts."""

import json

import pytest

from elmokit.errors import FormatError
from elmokit.probes.data import read_wic_data
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
            ({"label": "maybe"}, "line 2: .*'label'.*'maybe'"),
            ({"start1": None}, "line 2: .*'start1'.* None"),
            ({"sentence2": None}, "line 2: .*'sentence2'.* None"),
        ],
    )
    def test_damage(self, read, change, message):
        with pytest.raises(FormatError, match=message):
            read(PAIR, {**PAIR, **change})

    def test_an_empty_file(self, read):
        with pytest.raises(FormatError, match=r"/a\.jsonl: .*\bempty\b"):
            read()


class TestDistributedFiles:
    """The layouts of MCL-WiC, WiC and SuperGLUE hold the same pairs."""

    @pytest.fixture(params=["mcl", "wic", "superglue"])
    def folder(self, request, tmp_path):
        other = {**PAIR, "sentence2": "A bank .", "start2": 2, "end2": 6}
        pairs = [{**PAIR, "sentence1": "The bank rose ."}, other | {"sentence1": "The bank rose ."}]
        for split, names in {
            "train": ("training", "train", "train"),
            "dev": ("dev", "dev", "val"),
        }.items():
            if request.param == "superglue":
                lines = [
                    {**pair, "word": "bank", "label": label, "idx": 0, "version": 1.1}
                    for pair, label in zip(pairs, (False, True), strict=True)
                ]
                for line in lines:
                    del line["lemma"]
                text = "".join(json.dumps(line) + "\n" for line in lines)
                (tmp_path / f"{names[2]}.jsonl").write_text(text)
                continue
            (tmp_path / split).mkdir()
            if request.param == "mcl":
                data = [{**pair, "id": f"a.{n}", "start1": "4"} for n, pair in enumerate(pairs)]
                gold = json.dumps([{"id": "a.1", "tag": "T"}, {"id": "a.0", "tag": "F"}], indent=1)
                for one in data:
                    del one["label"]
                text, name = json.dumps(data, indent=1), f"{names[0]}.en-en.{{}}"
            else:
                text = "bank\tN\t1-0\tThe bank rose .\tBanks lend.\n"
                text += "bank\tN\t1-1\tThe bank rose .\tA bank .\n"
                gold, name = "F\nT\n", f"{names[1]}.{{}}.txt"
            (tmp_path / split / name.format("data")).write_text(text)
            (tmp_path / split / name.format("gold")).write_text(gold)
        return tmp_path

    def test_all_layouts_are_read(self, folder):
        data = read_wic_data(folder)
        for pairs in (data.train, data.dev):
            words = [
                (one.text[one.start : one.end], pair.same_sense, pair.lemma)
                for pair in pairs for one in (pair.first, pair.second)
            ]  # fmt: skip
            assert words == [
                ("bank", False, "bank"), ("Banks", False, "bank"),
                ("bank", True, "bank"), ("bank", True, "bank"),
            ]  # fmt: skip

    @pytest.mark.parametrize("folder", ["mcl", "wic"], indirect=True)
    def test_labels_that_do_not_fit_are_refused(self, folder):
        (gold,) = folder.glob("dev/*.gold*")
        gold.write_text('[{"id": "a.1", "tag": "T"}]' if gold.suffix == ".gold" else "T\n")
        with pytest.raises(FormatError, match=r"dev.*gold.* 2 pairs.*dev.*data"):
            read_wic_data(folder)
        gold.unlink()
        with pytest.raises(FileNotFoundError, match="gold"):
            read_wic_data(folder)

    @pytest.mark.parametrize("row", ["bank\tN\t1\ta\tb", "bank\tN\ta-b\ta\tb", "bank 1-1"])
    def test_a_damaged_row(self, tmp_path, row):
        (tmp_path / "a.data.txt").write_text(row)
        (tmp_path / "a.gold.txt").write_text("T")
        with pytest.raises(FormatError, match=r"a\.data\.txt, line 1: .* 2-1"):
            list(read_wic(tmp_path / "a.data.txt"))


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
        with pytest.raises(FormatError, match=r"line 2: .*'ANSWER'.*'2'"):
            read("1\t배\t[배]\t-\t[배]\t2")
