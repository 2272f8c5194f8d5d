import pytest

from elmokit.errors import InputError
from elmokit.tasks.formats.splits import find_split


def test_a_split_is_a_whole_part_of_a_name(tmp_path):
    for name in ("en_ewt-ud-train.conllu.xz", "constraints.tsv", ".train.swp", "device.tsv"):
        (tmp_path / name).touch()
    (tmp_path / "train").mkdir()
    assert find_split(tmp_path, "train").name == "en_ewt-ud-train.conllu.xz"
    with pytest.raises(FileNotFoundError, match=r"no file with 'dev'"):
        find_split(tmp_path, "dev")


def test_the_tasks_own_ending_decides_between_several(tmp_path):
    for name in ("x-train.conllu", "x-train.txt"):
        (tmp_path / name).touch()
    assert find_split(tmp_path, "train", (".conllu",)).name == "x-train.conllu"
    with pytest.raises(InputError, match=r"'train'.*x-train\.conllu, x-train\.txt\."):
        find_split(tmp_path, "train")


def test_a_missing_directory_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no directory .*/none"):
        find_split(tmp_path / "none", "train")
    (tmp_path / "dev.txt").touch()
    with pytest.raises(FileNotFoundError, match=r"dev\.txt is not a directory"):
        find_split(tmp_path / "dev.txt", "train")


def test_hidden_folders_are_passed_over_and_others_are_named(tmp_path):
    for name in (".cache", "en"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.tsv").touch()
    assert find_split(tmp_path, "train") == tmp_path / "en" / "train.tsv"
    (tmp_path / "ko").mkdir()
    (tmp_path / "ko" / "train.tsv").touch()
    with pytest.raises(InputError, match=r"en/train\.tsv, ko/train\.tsv"):
        find_split(tmp_path, "train")
