"""Numeric precision of training: bf16, and quick fp32 matrix products where they are exact."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import torch

log = logging.getLogger(__name__)

Precision = Literal["fp32", "bf16"]
MAX_RELATIVE_ERROR = 1e-5


def autocast(
    precision: Precision, device: torch.device
) -> Callable[[], AbstractContextManager[Any]]:
    """Return what to run a forward pass in: for bf16, products in half width; for fp32, nothing."""
    if precision == "fp32":
        return nullcontext
    return lambda: torch.autocast(device.type, dtype=torch.bfloat16)


@contextmanager
def quick_matmul(wanted: bool) -> Iterator[bool]:
    """Let fp32 products use the processor's quicker kernels, where these prove as exact.

    PyTorch's "medium" precision reaches kernels that are twice as fast on some processors at the
    same accuracy; on others it means bf16. So the error is measured first. The setting is put back
    at the end.

    Args:
        wanted: False leaves everything as it is.

    Yields:
        Whether the quick kernels are used.
    """
    before = torch.get_float32_matmul_precision()
    use = wanted and _medium_is_exact()
    if wanted:
        log.info("fp32 matrix products: %s kernels", "quick" if use else "plain")
    torch.set_float32_matmul_precision("medium" if use else before)
    try:
        yield use
    finally:
        torch.set_float32_matmul_precision(before)


def _medium_is_exact() -> bool:
    before = torch.get_float32_matmul_precision()
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(64, 256, generator=generator), torch.randn(256, 512, generator=generator)
    torch.set_float32_matmul_precision("medium")
    try:
        product = a @ b
    finally:
        torch.set_float32_matmul_precision(before)
    exact = a.double() @ b.double()
    return float((product - exact).abs().max() / exact.abs().max()) < MAX_RELATIVE_ERROR
