import os
import shutil
from pathlib import Path

from elmokit.files.cache_dir import cache_dir, cache_entries, remove_entry


def test_the_users_cache_is_taken(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir("layers") == tmp_path / "elmokit" / "layers"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_dir("layers") == tmp_path / ".cache" / "elmokit" / "layers"


def test_entries_are_named_by_a_pattern_and_removed_whole(tmp_path, monkeypatch):
    rmtree = shutil.rmtree

    def without_its_name(path, **options):
        assert not (tmp_path / "a1").exists()
        rmtree(path, **options)

    monkeypatch.setattr(shutil, "rmtree", without_its_name)
    (tmp_path / "a1").mkdir()
    (tmp_path / "a1" / "data").write_bytes(b"123")
    (tmp_path / "a2").write_bytes(b"12345")
    (tmp_path / "other").touch()
    (tmp_path / "a3").symlink_to(tmp_path / "other")
    os.utime(tmp_path / "a2", (1, 1))
    found = cache_entries(tmp_path, r"a\d")
    assert [(entry.path.name, entry.num_bytes) for entry in found] == [("a2", 5), ("a1", 3)]
    for entry in [*found, *found]:  # the second time, as if another process had done it
        remove_entry(entry)
    assert sorted(os.listdir(tmp_path)) == ["a3", "other"]
    assert cache_entries(tmp_path / "none", ".*") == []
