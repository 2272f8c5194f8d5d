from pathlib import Path

import pytest

from elmokit.errors import InputError
from elmokit.files.cache_dir import cache_dir


def test_the_users_cache_is_taken(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir("layers") == tmp_path / "elmokit" / "layers"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_dir("layers") == tmp_path / ".cache" / "elmokit" / "layers"


def test_without_a_home_the_error_says_what_to_set(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(InputError, match="XDG_CACHE_HOME"):
        cache_dir("layers")
