"""Settings of PyTorch and of the C library that make training quicker on a CPU."""

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Literal

import torch

MAX_RELATIVE_ERROR = 1e-5
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # numbers of <malloc.h>


@contextmanager
def matmul_precision(name: Literal["highest", "high", "medium"]) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def quick_matmul(wanted: bool) -> Iterator[None]:
    """Use the processor's quicker fp32 kernels if they prove to be exact.

    PyTorch's "medium" precision is twice as fast on some processors at the same accuracy but means
    bf16 on others, so the error is measured first. Quick kernels take megabytes for each of the
    last thousand matrix shapes: code that uses them should have few shapes (see
    `elmokit.training.pretraining.loss.WindowTensors`; validation does without them).
    """
    with matmul_precision("medium") if wanted and _medium_is_exact() else nullcontext():
        yield


def _medium_is_exact() -> bool:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(64, 256, generator=generator), torch.randn(256, 512, generator=generator)
    with matmul_precision("medium"):
        product = a @ b
    exact = a.double() @ b.double()
    return float((product - exact).abs().max() / exact.abs().max()) < MAX_RELATIVE_ERROR


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep freed memory in the process until the end of the block.

    The GNU C library returns large freed blocks to the system, which clears their pages again on
    the next allocation: a third of an update's time on two cores. No effect with other C libraries,
    or if the environment tunes malloc.
    """
    is_tuned = any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ)
    if platform.libc_ver()[0] != "glibc" or is_tuned:
        yield
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
    libc.mallopt(_MMAP_MAX, 0)
    try:
        yield
    finally:  # the defaults
        libc.mallopt(_TRIM_THRESHOLD, 128 * 1024)
        libc.mallopt(_MMAP_MAX, 65536)
        libc.malloc_trim(0)
