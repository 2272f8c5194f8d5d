"""What makes updates quick: precision that is put back, memory that is kept."""

import os
import platform
import subprocess

import pytest
import torch

from elmokit.training.speed import quick_matmul

from ...builders.command_line import start_python

GLIBC = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only the GNU C library has these settings"
)
NUM_VALUES = 10_000_000  # 40 MB: ten thousand pages, more than the library would keep by itself


def test_the_error_is_measured_on_this_processor():
    with quick_matmul(True) as used:
        generator = torch.Generator().manual_seed(1)
        a, b = (torch.randn(64, 64, generator=generator) for _ in range(2))
        error = ((a @ b) - (a.double() @ b.double())).abs().max() / 8
        assert error < (1e-5 if used else 1e-6)


@pytest.fixture
def nothing_set(monkeypatch):
    """No settings of the library's memory from outside."""
    for name in [name for name in os.environ if name.startswith(("MALLOC_", "GLIBC_TUNABLES"))]:
        monkeypatch.delenv(name)


MEASURE = f"""
import resource, torch
from elmokit.training.speed import kept_memory

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


@GLIBC
@pytest.mark.usefixtures("nothing_set")
def test_freed_memory_is_used_again_and_given_back_at_the_end():
    # in a fresh process: blocks of other tests change what is kept
    shown, _ = start_python(MEASURE, stdout=subprocess.PIPE).communicate(timeout=120)
    faults, given_back = map(int, shown.split())
    assert faults < 100
    assert given_back > 2 * NUM_VALUES
