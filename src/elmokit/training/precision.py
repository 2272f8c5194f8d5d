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
def matmul_precision(name: Literal["highest", "high", "medium"]) -> Iterator[None]:
    """Set PyTorch's precision of fp32 products, and put it back at the end."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def quick_matmul(wanted: bool) -> Iterator[bool]:
    """Let fp32 products use the processor's quicker kernels, where these prove as exact.

    PyTorch's "medium" precision reaches kernels that are twice as fast on some processors at the
    same accuracy; on others it means bf16. So the error is measured first. The setting is put back
    at the end.

    The quick kernels are kept, with their working memory, for each of the last thousand matrix
    shapes: megabytes a shape. So what runs under them should have few shapes; see
    `elmokit.training.pretraining.objective.WindowTensors`, and
    `elmokit.training.pretraining.validation`, which does without them.

    Args:
        wanted: False leaves everything as it is.

    Yields:
        Whether the quick kernels are used.
    """
    use = wanted and _medium_is_exact()
    if wanted:
        log.info("fp32 matrix products: %s kernels", "quick" if use else "plain")
    with matmul_precision("medium") if use else nullcontext():
        yield use


def _medium_is_exact() -> bool:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(64, 256, generator=generator), torch.randn(256, 512, generator=generator)
    with matmul_precision("medium"):
        product = a @ b
    exact = a.double() @ b.double()
    return float((product - exact).abs().max() / exact.abs().max()) < MAX_RELATIVE_ERROR
