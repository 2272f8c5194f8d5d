"""How and where a frozen biLM is computed: precisions, devices, and the engine for them.

``fp32`` equals the plain modules. ``bf16`` holds and multiplies matrices as bfloat16. ``int8``
holds the matrices of the LSTM and the highways as integers with a scale per row, and quantizes
their inputs row by row. Gates and cell state are always fp32; so are sums, except in int8 (32-bit
integers) and in PyTorch's bf16 (rounded at the end).
"""

import logging
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

from elmokit.bilm.config import BiLMConfig
from elmokit.errors import InputError, check_choice, needs_torch
from elmokit.inference.engine import Engine
from elmokit.inference.kernel_backend import PackedEngine
from elmokit.kernels.library import MatrixKind, load_kernels, use_one_thread_after_a_fork

log = logging.getLogger(__name__)

Precision = MatrixKind
"""Of the matrix products, as the kernels name it."""


def check_precision(precision: str) -> Precision:
    """Return ``precision``; raise `InputError` with the choices if it is unknown."""
    return cast(Precision, check_choice(precision, Precision, name="precision"))


def has_quick_bf16(device: str) -> bool:
    """Return whether products in bf16 are faster there than in fp32: what ``auto`` means."""
    kernels = load_kernels() if device == "cpu" else None
    return kernels is not None and kernels.has_quick_bf16


def find_device(device: object) -> str:
    """Return the name of the device that a user chose; ``auto`` is CUDA if available."""
    name = str(device)
    if name == "cpu" or (name == "auto" and not _may_have_cuda()):
        return "cpu"
    return str(pick_device(name))


def pick_device(device: Any) -> Any:
    """Return the ``torch.device`` for `find_device`, which names the errors."""
    torch = import_torch()
    num_gpus = torch.cuda.device_count()
    name = str(device)
    if name == "auto":
        name = "cuda" if num_gpus else "cpu"
    try:
        picked = torch.device(name)
        if picked.type == "cuda":  # checked without starting it, which takes memory and time
            is_there = (picked.index or 0) < num_gpus
        else:
            is_there = torch.empty(0, device=picked).numel() == 0
    except (RuntimeError, AssertionError, NotImplementedError, ImportError):
        is_there, picked = False, None
    if not is_there:
        raise InputError(
            f"device={name!r} is not available: use 'auto' or 'cpu'. PyTorch sees {num_gpus} CUDA "
            "device(s) here."
        )
    return picked


def import_torch() -> Any:
    """Return PyTorch, which nothing here imports that only needs the CPU's kernels."""
    with needs_torch():
        return import_module("torch")


def _may_have_cuda() -> bool:
    """Return whether PyTorch might see a GPU: asking it takes a second if it is not imported."""
    if sys.modules.get("torch") is not None:
        return True
    has_driver = os.path.exists("/proc/driver/nvidia") or os.name == "nt"
    return has_driver and "torch" not in sys.modules and find_spec("torch") is not None


def build_engine(
    config: BiLMConfig, arrays: Mapping[str, np.ndarray], *, precision: Precision, device: str
) -> Engine:
    """Build an engine: on the CPU of compiled kernels, or of NumPy in fp32; else of PyTorch.

    PyTorch computes bf16 for int8.
    """
    use_one_thread_after_a_fork()
    kernels = load_kernels() if device == "cpu" else None
    if kernels is not None:
        engine = PackedEngine(config, arrays, precision=precision, kernels=kernels)
        quick = "" if precision in kernels.quick_kinds else ", without instructions of its own"
        log.debug("%s through compiled %s%s", precision, engine.computed_by, quick)
        return engine
    if device == "cpu":
        if precision != "fp32":
            log.warning("%s needs the compiled kernels: computing in fp32", precision)
        from elmokit.inference.numpy_backend import NumPyEngine

        log.debug("fp32 through NumPy")
        return NumPyEngine(config, arrays)
    if precision == "int8":
        log.warning("int8 needs the CPU: computing in bf16")
    log.debug("%s through PyTorch on %s", "fp32" if precision == "fp32" else "bf16", device)
    return torch_backend().ModuleEngine(config, arrays, use_bf16=precision != "fp32", device=device)


def torch_backend() -> Any:
    """Return `elmokit.inference.torch_backend`, which only this imports: it needs PyTorch."""
    with needs_torch():
        return import_module("elmokit.inference.torch_backend")
