"""Threads on a machine with other work; times and limits are given, not measured."""

import os
import subprocess
import sys

import pytest
import torch

from elmokit.cli import threads
from elmokit.cli.threads import (
    ProcessorTimes,
    cgroup_cores,
    cores_are_shared,
    free_cores,
    processor_times,
)


@pytest.fixture
def eight_threads(monkeypatch):
    """PyTorch would use eight threads; the list gets the numbers that are set."""
    chosen = []
    for name in threads._NUMBER:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.setattr(threads, "cgroup_cores", lambda: None)
    monkeypatch.setattr(threads, "_at_start", ProcessorTimes(0.0, 0.0, 0.0))
    return chosen


@pytest.mark.parametrize(
    ("free", "expected"), [(8.0, []), (7.6, []), (7.4, [7]), (1.0, [1]), (0.3, [1]), (None, [])]
)
def test_threads_are_as_many_as_cores_are_free(eight_threads, monkeypatch, free, expected, caplog):
    caplog.set_level("INFO")
    monkeypatch.setattr(threads, "free_cores", lambda since: free)
    threads.choose_threads(None)
    assert eight_threads == expected
    said = f"{expected[0]} of 8 CPU threads: other programs" if expected else ""
    assert said in caplog.text
    assert bool(caplog.text) == bool(expected)


def test_a_container_allows_fewer(eight_threads, monkeypatch, caplog):
    caplog.set_level("INFO")
    monkeypatch.setattr(threads, "free_cores", lambda since: 7.0)
    monkeypatch.setattr(threads, "cgroup_cores", lambda: 1.5)
    threads.choose_threads(None)
    assert eight_threads == [2]
    assert "2 of 8 CPU threads: the container's limit" in caplog.text


@pytest.mark.parametrize("name", threads._NUMBER)
def test_the_user_decides(eight_threads, monkeypatch, name):
    monkeypatch.setattr(threads, "free_cores", lambda since: 1.0)
    threads.choose_threads(5)
    monkeypatch.setenv(name, "8")
    threads.choose_threads(None)
    assert eight_threads == [5]


def test_free_cores_are_idle_or_our_own(monkeypatch):
    now = ProcessorTimes(clock=12.0, idle=103.0, own=2.5)
    monkeypatch.setattr(threads, "processor_times", lambda: now)
    assert free_cores(ProcessorTimes(clock=10.0, idle=100.0, own=0.5)) == 2.5
    assert free_cores(ProcessorTimes(clock=11.9, idle=102.9, own=2.4)) is None
    monkeypatch.setattr(threads, "processor_times", lambda: None)
    assert free_cores(now) is None


def test_idle_time_is_that_of_our_cores(tmp_path, monkeypatch):
    stat = tmp_path / "stat"
    stat.write_text(
        "cpu  9 9 9 9000 9 0 0\ncpu0 1 0 1 200 30 0 0\ncpu1 1 0 1 400 50 0 0\ncpu10 1 0 1 7 7 0\n"
        "intr 5\n"
    )
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1}, raising=False)
    times = processor_times(stat)
    assert times is not None
    assert times.idle == 450 / os.sysconf("SC_CLK_TCK")
    assert processor_times(tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("inner", "outer", "cores"),
    [("150000 100000", "max 100000", 1.5), ("max 100000", "50000 100000", 0.5),
     ("max 100000", "max 100000", None), (None, "200000 100000", 2.0)],
)  # fmt: skip
def test_the_smallest_quota_of_all_groups_counts(tmp_path, inner, outer, cores):
    group = tmp_path / "fs" / "outer" / "inner"
    group.mkdir(parents=True)
    for directory, quota in ((group, inner), (group.parent, outer)):
        if quota is not None:
            (directory / "cpu.max").write_text(f"{quota}\n")
    own = tmp_path / "cgroup"
    own.write_text("1:cpu:/elsewhere\n0::/outer/inner\n")
    assert cgroup_cores(tmp_path / "fs", own) == cores


def test_without_control_groups_there_is_no_limit(tmp_path):
    (tmp_path / "cgroup").write_text("1:cpu:/elsewhere\n")
    assert cgroup_cores(tmp_path, tmp_path / "cgroup") is None
    assert cgroup_cores(tmp_path, tmp_path / "missing") is None


@pytest.mark.parametrize("given", [{}, {"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "7"}])
def test_idle_threads_sleep_soon_unless_the_user_says_how_they_wait(monkeypatch, given):
    for name in threads._WAITING:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(threads, "_at_start", None)
    monkeypatch.setattr(threads.os, "environ", dict(os.environ))
    monkeypatch.setattr(threads, "cores_are_shared", lambda: False)
    threads.prepare_threads()
    found = {name: threads.os.environ[name] for name in threads._WAITING if name in os.environ}
    assert found == (given or {"GOMP_SPINCOUNT": str(threads.SPIN_COUNT)})


def test_beside_other_processes_they_sleep_at_once(monkeypatch):
    monkeypatch.setattr(threads.os, "environ", {})
    monkeypatch.setattr(threads, "_at_start", None)
    monkeypatch.setattr(threads, "cores_are_shared", lambda: True)
    threads.prepare_threads()
    assert threads.os.environ == {"OMP_WAIT_POLICY": "passive"}


@pytest.mark.parametrize(
    ("running", "ours", "shared"),
    [(1, 4, False), (2, 4, True), (2, 3, False), (3, 3, True), (9, 1, True), (4, 1, False)],
)
def test_cores_are_shared_if_more_threads_want_to_run_than_others_have_cores(
    tmp_path, monkeypatch, running, ours, shared
):
    """On four cores, of which we may use some."""
    load = tmp_path / "loadavg"
    load.write_text(f"0.20 0.18 0.12 {running}/80 11206\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(ours)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert cores_are_shared(load) is shared
    assert cores_are_shared(tmp_path / "missing") is False


def test_the_command_prepares_before_torch_is_loaded():
    code = """
import sys
from elmokit.cli import threads
before = threads.prepare_threads
def check():
    assert "torch" not in sys.modules
    before()
import elmokit.cli
elmokit.cli.prepare_threads = check
sys.argv = ["elmokit", "--version"]
try:
    elmokit.cli.main()
finally:
    assert threads._at_start is not None or sys.platform != "linux"
    import os
    assert "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ
"""
    environment = {key: value for key, value in os.environ.items() if key not in threads._WAITING}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "elmokit" in done.stdout
