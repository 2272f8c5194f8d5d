import os
import stat

import pytest

from elmokit.files import ownership
from elmokit.files.ownership import make_directory, why_untrusted

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no users on this system")
STRANGER = 54321


@pytest.fixture
def home(tmp_path):
    """A directory `home/cache` with a file."""
    folder = tmp_path / "home" / "cache"
    folder.mkdir(parents=True, mode=0o755)
    (folder / "file").write_text("")
    (folder / "file").chmod(0o644)
    return folder.parent


@pytest.fixture
def give_away(monkeypatch):
    """Give a path to a stranger; who cannot do so becomes one instead."""

    def give(path):
        if os.geteuid() == 0:
            os.chown(path, STRANGER, -1)
        else:
            monkeypatch.setattr(ownership, "_trusted_users", lambda: {0})

    return give


def test_what_only_this_user_writes_is_trusted(home):
    assert why_untrusted(home / "cache" / "file") is None
    assert why_untrusted(home / "cache") is None


@pytest.mark.parametrize(
    ("place", "mode"),
    [
        *(("cache/file", mode) for mode in (0o666, 0o664, 0o602)),
        *((place, mode) for place in ("cache", "") for mode in (0o777, 0o757)),
    ],
)
def test_what_others_may_write_is_named_with_its_mode(home, place, mode):
    (home / place).chmod(mode)
    assert f"{home / place} (mode {mode:o})" in str(why_untrusted(home / "cache" / "file"))


def test_in_a_sticky_directory_others_replace_nothing(home):
    home.chmod(0o1777)
    assert why_untrusted(home / "cache" / "file") is None
    assert why_untrusted(home) is not None  # but they may add to it


@pytest.mark.parametrize("what", ["cache/file", "cache", ""])
def test_what_another_user_owns_is_not_trusted(home, give_away, what):
    give_away(home / what)
    assert f"belongs to user {(home / what).stat().st_uid}" in str(
        why_untrusted(home / "cache/file")
    )


def test_a_group_may_write_above_if_it_is_the_users_own(home, monkeypatch):
    home.chmod(0o775)
    group = home.stat().st_gid
    monkeypatch.setattr(ownership, "_trusted_groups", lambda: {group})
    assert why_untrusted(home / "cache" / "file") is None
    monkeypatch.setattr(ownership, "_trusted_groups", lambda: {group + 1})
    assert f"{home} (mode 775)" in str(why_untrusted(home / "cache" / "file"))


def test_links_are_followed_above_and_refused_below(home, tmp_path):
    (tmp_path / "link").symlink_to(home)
    assert why_untrusted(tmp_path / "link" / "cache") is None
    (home / "link").symlink_to(home / "cache")
    assert f"{home / 'link'} is a link" in str(why_untrusted(home / "link"))
    home.chmod(0o777)
    assert str(home) in str(why_untrusted(tmp_path / "link" / "cache"))


def test_root_outside_of_a_container_owns_only_what_is_above(home, monkeypatch):
    monkeypatch.setattr(ownership, "_trusted_users", lambda: {home.stat().st_uid + 1})
    monkeypatch.setattr(ownership, "_unmapped_users", lambda: {home.stat().st_uid})
    assert "belongs to user" in str(why_untrusted(home / "cache" / "file"))


def test_new_directories_are_writable_for_the_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        make_directory(tmp_path / "a" / "b")
        make_directory(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    for made in (tmp_path / "a", tmp_path / "a" / "b"):
        assert stat.S_IMODE(made.stat().st_mode) == 0o755


def test_a_file_in_the_way_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        make_directory(tmp_path / "file")
