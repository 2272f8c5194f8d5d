"""Threads that a container allows, and how they wait."""

import os

import pytest
import torch

from elmokit.cli import threads
from elmokit.cli.threads import cgroup_cores

from ...builders.command_line import run_python


@pytest.mark.parametrize(("allowed", "expected"), [(None, []), (7.6, []), (1.5, [2]), (0.3, [1])])
def test_threads_are_as_many_as_cores_are_allowed(monkeypatch, allowed, expected):
    numbers = []
    for name in threads._NUMBER:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(torch, "set_num_threads", numbers.append)
    monkeypatch.setattr(threads, "cgroup_cores", lambda: allowed)
    threads.choose_threads(None)
    assert numbers == expected
    monkeypatch.setenv(threads._NUMBER[0], "8")
    threads.choose_threads(None)
    threads.choose_threads(5)
    assert numbers == [*expected, 5], "the user decides"


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


@pytest.mark.parametrize("own", [{}, {"OMP_WAIT_POLICY": "active"}])
def test_the_command_says_how_threads_wait_before_torch_is_loaded(own):
    code = """
import os, sys
sys.argv = ["elmokit", "--version"]
from elmokit.cli import main
assert "torch" not in sys.modules
try:
    main()
finally:
    print(os.environ.get("GOMP_SPINCOUNT"), file=sys.stderr)
"""
    environment = {key: value for key, value in os.environ.items() if key not in threads._WAITING}
    done = run_python(code, env=environment | own)
    assert done.stderr.strip() == ("None" if own else str(threads.SPIN_COUNT))
