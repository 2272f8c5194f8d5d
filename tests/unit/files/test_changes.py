import hashlib
from pathlib import Path

import pytest

from elmokit.files.changes import changed_file, changes, describe_files
from elmokit.files.sources import find_files


@pytest.fixture
def tree(tmp_path):
    for name in ("a.txt", "sub/b.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("text\n")
    return tmp_path


def test_changes_are_listed_by_dotted_name():
    recorded = {"train": {"batch_size": 16, "seed": 1}, "model": "a", "gone": 3}
    present = {"train": {"batch_size": 32, "seed": 1}, "model": "a", "new": [1]}
    assert list(map(str, changes(recorded, present))) == [
        "train.batch_size was 16 and is now 32",
        "gone was 3 and is now None",
        "new was None and is now [1]",
    ]


def test_values_that_json_does_not_tell_apart_are_equal():
    assert changes({"filters": [[1, 2]], "a": None}, {"filters": ((1, 2),)}) == []


def test_files_are_described_by_path_size_and_hash(tree):
    path = tree / "a.txt"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert describe_files([path]) == [{"path": str(path), "num_bytes": 5, "sha256": digest}]


class TestChanges:
    @pytest.fixture
    def changed(self, tree):
        """A function that tells the name of the file that has changed."""
        recorded = describe_files(find_files(tree))

        def changed(recorded=recorded, paths=tree):
            path = changed_file(recorded, paths)
            return None if path is None else Path(path).name

        return changed

    def test_none_has(self, changed, tree):
        assert changed() is None
        (tree / "a.txt").touch()
        assert changed() is None

    @pytest.mark.parametrize("content", ["longer than before", "12345"])
    def test_other_contents_even_of_the_same_length(self, changed, tree, content):
        (tree / "a.txt").write_text(content)
        assert changed() == "a.txt"

    def test_files_that_come_and_go(self, changed, tree):
        (tree / "zz.txt").write_text("new")
        assert changed() == "zz.txt"

    def test_a_text_that_is_gone_altogether_has_not(self, changed, tree):
        assert changed(paths=tree / "gone.txt") is None

    def test_what_was_recorded_without_a_hash_is_compared_by_size(self, changed, tree):
        older = [
            {key: f[key] for key in ("path", "num_bytes")} for f in describe_files(find_files(tree))
        ]
        (tree / "a.txt").write_text("12345")
        assert changed(older) is None
        (tree / "a.txt").write_text("123456")
        assert changed(older) == "a.txt"


def test_standard_input_has_a_path_alone():
    assert describe_files([Path("-")]) == [{"path": "-", "num_bytes": None, "sha256": None}]
