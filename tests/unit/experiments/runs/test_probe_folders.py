import pytest

from elmokit.errors import InputError
from elmokit.experiments.runs.probe_folders import (
    check_corpus_folder,
    check_pos_folder,
    check_sense_folder,
    find_test_set,
)


def fill(folder, *names):
    for name in names:
        (folder / name).touch()


def test_a_sense_folder_is_whole_or_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no semcor\.data\.xml"):
        check_corpus_folder(tmp_path)
    fill(tmp_path, "semcor.data.xml.xz", "semcor.gold.key.txt")
    check_corpus_folder(tmp_path)
    with pytest.raises(FileNotFoundError, match="no test set"):
        check_sense_folder(tmp_path)
    fill(tmp_path, "a.data.xml")
    with pytest.raises(FileNotFoundError, match=r"no a\.gold\.key\.txt"):
        check_sense_folder(tmp_path)
    fill(tmp_path, "a.gold.key.txt.gz")
    with pytest.raises(FileNotFoundError, match=r"senses\.tsv; it has 0"):
        check_sense_folder(tmp_path)
    fill(tmp_path, "x-senses.tsv")
    check_sense_folder(tmp_path)


def test_of_several_test_sets_the_usual_one_is_taken(tmp_path):
    fill(tmp_path, "semcor.data.xml", "senseval2.data.xml")
    assert find_test_set(tmp_path) == "senseval2"
    fill(tmp_path, "senseval3.data.xml")
    with pytest.raises(InputError, match="several test sets: senseval2, senseval3"):
        find_test_set(tmp_path)
    fill(tmp_path, "semeval2007.data.xml.xz")
    assert find_test_set(tmp_path) == "semeval2007"


def test_tagged_text_needs_both_files(tmp_path):
    fill(tmp_path, "en-train.conllu")
    with pytest.raises(FileNotFoundError, match="'dev'"):
        check_pos_folder(tmp_path)
