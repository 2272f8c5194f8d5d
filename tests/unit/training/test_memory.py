"""Memory that stays in the process from step to step."""

import os
import platform
import subprocess
import sys

import pytest

from elmokit.training import memory
from elmokit.training.memory import kept_memory

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only the GNU C library has these settings"
)
NUM_VALUES = 10_000_000  # 40 MB: ten thousand pages, more than the library would keep by itself


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    """No settings of the library's memory from outside."""
    for name in [name for name in os.environ if name.startswith(("MALLOC_", "GLIBC_TUNABLES"))]:
        monkeypatch.delenv(name)


MEASURE = f"""
import resource, torch
from elmokit.training.memory import kept_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

with kept_memory():
    for _ in range(20):  # the library sets a few freed blocks aside before it uses one again
        torch.zeros({NUM_VALUES})
    before = faults()
    torch.zeros({NUM_VALUES})
    again, kept = faults() - before, resident()
print(again, kept - resident())
"""
"""Pages that the system cleared for the same memory a second time; bytes given back at the end."""


def test_freed_memory_is_used_again_and_given_back_at_the_end():
    done = subprocess.run(  # in a fresh process: blocks of other tests change what is kept
        [sys.executable, "-W", "ignore", "-c", MEASURE],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    faults, given_back = map(int, done.stdout.split())
    assert faults < 100
    assert given_back > 2 * NUM_VALUES


@pytest.mark.parametrize("name", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])
def test_what_the_user_has_set_stays(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    monkeypatch.setattr(memory, "_set", lambda *_: pytest.fail("set anew"))
    with kept_memory():
        pass
