"""Whether others could have written a file: asked before code is loaded from it."""

import functools
import os
import stat
from pathlib import Path

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_directory(path: Path) -> None:
    """Make a directory and its missing parents, to which others may not write."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(mode=0o755, exist_ok=True)


def why_untrusted(path: Path) -> str | None:
    """Say why others could have written a file or the directory ``path``; None if they could not.

    It must be a regular file or directory, not a link, of this user or root, that nobody else may
    write. Nobody else may be able to replace it: in the directories above, only the owner (this
    user or root) may write, or they are sticky, like ``/tmp``; there a user's own group, and that
    of root, count as the user. Always None where the system has no users, as on Windows.
    """
    if not hasattr(os, "geteuid"):
        return None
    status = path.lstat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return f"{path} is a link or a special file"
    if status.st_uid not in _trusted_users():
        return f"{path} belongs to user {status.st_uid}"
    if status.st_mode & _OTHERS_MAY_WRITE:
        return f"others may write to {path} (mode {stat.S_IMODE(status.st_mode):o})"
    for parent in path.parent.resolve().joinpath(path.name).parents:
        status = parent.stat()
        if status.st_uid not in _trusted_users() | _unmapped_users():
            return f"{parent} belongs to user {status.st_uid}"
        if status.st_mode & stat.S_ISVTX:
            continue
        is_own_group = status.st_gid in _trusted_groups()
        if status.st_mode & (stat.S_IWOTH if is_own_group else _OTHERS_MAY_WRITE):
            return f"others may write to {parent} (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def _trusted_users() -> set[int]:
    return {0, os.geteuid()}


@functools.cache
def _trusted_groups() -> set[int]:
    """Return root's group and, where this user has a group of the same name, that one."""
    import grp
    import pwd

    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
        return {0, grp.getgrnam(name).gr_gid}
    except KeyError:
        return {0}


@functools.cache
def _unmapped_users() -> set[int]:
    """Return the user that stands for root outside of a container that does not know root."""
    try:
        mapping = Path("/proc/self/uid_map").read_text()
        overflow = Path("/proc/sys/kernel/overflowuid").read_text()
    except OSError:
        return set()
    return set() if mapping.split() == ["0", "0", str(2**32 - 1)] else {int(overflow)}
