"""Checks, counts and limits that all readers share; the files of a data directory."""

from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.tasks.formats.reading import find_split, read_examples
from elmokit.wording import Location

PATH = Path("train.tsv")


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Hand on whole numbers; those below zero are faults, None has no gold label."""
    (tmp_path / PATH).touch()
    monkeypatch.chdir(tmp_path)

    def read(items, **settings):
        def examples(path, report):
            for line, item in enumerate(items, 1):
                if item is None:
                    report.skip("no_gold_label", Location(path=path, line=line))
                elif item < 0:
                    report.skip("empty_text", Location(path=path, line=line))
                else:
                    yield item

        return list(read_examples(PATH, examples, **settings))

    return read


def test_examples_pass_and_a_share_of_faults_up_to_the_limit(read, caplog):
    assert read([3, 1, 2]) == [3, 1, 2]
    assert not caplog.records
    assert len(read([1] * 19 + [-1])) == 19  # 1 of 20 = 5 %
    assert "empty_text: 1 (first: train.tsv, line 20)" in caplog.text
    assert read([1, None, None]) == [1]  # no gold label is no fault


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([1] * 18 + [-1], r"1 of 19 .* 0\.05 .*empty_text: 1 .*line 19\b"),
        ([], "no example"),
        ([None], r"no example .*no_gold_label: 1 .*line 1\b"),
    ],
)
def test_too_many_faults_and_files_without_examples_are_errors(read, items, message):
    with pytest.raises(FormatError, match=rf"train\.tsv: {message}"):
        read(items)


@pytest.mark.parametrize(
    ("names", "suffixes", "expected"),
    [
        (["en_ewt-ud-train.conllu.xz", "constraints.tsv", ".train.swp"], (), 0),
        (["x-train.conllu", "x-train.txt"], (".conllu",), 0),
        (["training.tsv", "device.tsv"], (), 0),
        (["en/train.tsv", ".cache/train.tsv"], (), 0),
    ],
)
def test_a_split_is_a_whole_part_of_a_name(tmp_path, names, suffixes, expected):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert find_split(tmp_path, "train", suffixes) == tmp_path / names[expected]
    with pytest.raises(FileNotFoundError, match="'dev'"):
        find_split(tmp_path, "dev")


def test_several_files_of_a_split_and_missing_directories_are_told(tmp_path):
    for name in ("x-train.conllu", "x-train.txt"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"'train'.*x-train\.conllu, x-train\.txt"):
        find_split(tmp_path, "train")
    for name in ("none", "x-train.txt"):
        with pytest.raises(FileNotFoundError, match=name):
            find_split(tmp_path / name, "train")
