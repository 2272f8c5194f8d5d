"""Directories that one process has for itself."""

import errno
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from elmokit.files import locks
from elmokit.files.locks import LOCK_NAME, directory_lock, held_directory

HOLDS = """
import sys, time
from pathlib import Path
from elmokit.files.locks import directory_lock
with directory_lock(Path(sys.argv[1]), busy="busy"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_process_is_refused_and_a_killed_one_holds_nothing(tmp_path):
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout.readline() == "held\n"
            refused = pytest.raises(FileExistsError, match="it is busy")
            with refused, directory_lock(tmp_path, busy="it is busy"):
                pytest.fail("two processes hold one directory")
        finally:
            other.kill()
    with directory_lock(tmp_path, busy="it is busy") as lock:
        assert lock == tmp_path / LOCK_NAME
        assert list(tmp_path.iterdir()) == [lock]


def test_the_holder_may_remove_the_lock(tmp_path):
    with directory_lock(tmp_path, busy="it is busy") as lock:
        lock.unlink()
    with directory_lock(tmp_path, busy="it is busy"):
        refused = pytest.raises(FileExistsError, match="it is busy")
        with refused, directory_lock(tmp_path, busy="it is busy"):
            pytest.fail("two hold one directory")


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_a_file_system_without_locks_is_told(number, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("fcntl.flock", refusing(number))
    with directory_lock(tmp_path, busy=""):
        told = f"cannot be locked ([Errno {number}] no locks): do not start a second"
        assert told in caplog.text


def test_another_error_of_the_lock_is_not_hidden(tmp_path, monkeypatch):
    monkeypatch.setattr("fcntl.flock", refusing(errno.EIO))
    with pytest.raises(OSError, match="no locks"), directory_lock(tmp_path, busy=""):
        pytest.fail("held what cannot be held")


def refusing(number):
    def flock(file, operation):
        raise OSError(number, "no locks")

    return flock


def test_a_directory_goes_where_an_open_file_keeps_its_name(tmp_path, monkeypatch):
    """NFS renames a file that is removed while it is open, within its directory."""
    unlink = Path.unlink

    def rename(path, **_):
        path.rename(path.with_name(".nfs0001"))

    def release(lock, *given, **named):
        found = FileLock.release(lock, *given, **named)
        for left in Path(lock.lock_file).parent.glob(".nfs*"):
            unlink(left)
        return found

    monkeypatch.setattr(Path, "unlink", rename)
    monkeypatch.setattr(locks, "FileLock", type("Lock", (FileLock,), {"release": release}))
    with held_directory(tmp_path / "held", busy="busy"):
        assert (tmp_path / "held").is_dir()
    assert not (tmp_path / "held").exists()


def test_a_directory_that_its_holder_removes_meanwhile_is_made_again(tmp_path):
    """Many threads stand for processes: a lock is of one open file each."""
    failures, taken = [], []

    def work():
        for _ in range(100):
            try:
                with held_directory(tmp_path / "held", busy="busy"):
                    taken.append(1)
            except FileExistsError:
                pass
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []
    assert taken
