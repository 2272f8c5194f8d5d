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
)


@pytest.mark.parametrize(
    ("free", "allowed", "expected"),
    [(8.0, None, []), (7.6, None, []), (7.4, None, [7]), (0.3, None, [1]), (None, None, []),
     (7.0, 1.5, [2])],
)  # fmt: skip
def test_threads_are_as_many_as_cores_are_free_and_allowed(monkeypatch, free, allowed, expected):
    chosen = []
    for name in threads._NUMBER:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.setattr(threads, "cgroup_cores", lambda: allowed)
    monkeypatch.setattr(threads, "free_cores", lambda since: free)
    monkeypatch.setattr(threads, "_at_start", ProcessorTimes(0.0, 0.0, 0.0))
    threads.choose_threads(None)
    assert chosen == expected
    monkeypatch.setenv(threads._NUMBER[0], "8")
    threads.choose_threads(None)
    threads.choose_threads(5)
    assert chosen == [*expected, 5], "the user decides"


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
    assert cgroup_cores(tmp_path, tmp_path / "missing") is None


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


@pytest.mark.parametrize("own", [{}, {"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "7"}])
def test_the_command_says_how_threads_wait_before_torch_is_loaded(own):
    code = """
import os, sys
sys.argv = ["elmokit", "--version"]
from elmokit.cli import main, threads
assert "torch" not in sys.modules
try:
    main()
finally:
    print(*(os.environ.get(name) for name in threads._WAITING), file=sys.stderr)
"""
    environment = {key: value for key, value in os.environ.items() if key not in threads._WAITING}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment | own, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    values = dict(zip(threads._WAITING, done.stderr.split(), strict=True))
    given = {name: value for name, value in values.items() if value != "None"}
    if own:
        assert given == own
    else:
        assert given in (
            {"OMP_WAIT_POLICY": "passive"},
            {"GOMP_SPINCOUNT": str(threads.SPIN_COUNT)},
        )
