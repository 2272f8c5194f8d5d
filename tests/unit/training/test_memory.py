"""Memory that stays in the process from step to step."""

import platform
import resource

import pytest
import torch

from elmokit.training.memory import kept_memory

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only the GNU C library has these settings"
)
NUM_VALUES = 4_000_000  # 16 MB: four thousand pages


def faults_of_allocating_again():
    """Pages that the system had to clear when the same memory was asked for a second time."""
    torch.zeros(NUM_VALUES)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.zeros(NUM_VALUES)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_freed_memory_is_used_again():
    with kept_memory():
        assert faults_of_allocating_again() < 100


def test_and_given_back_at_the_end():
    with kept_memory():
        torch.zeros(NUM_VALUES)
        kept = resident_bytes()
    assert resident_bytes() < kept - 2 * NUM_VALUES


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
