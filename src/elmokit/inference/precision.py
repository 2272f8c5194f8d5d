"""How and where a frozen biLM is computed: precisions, devices, and the network for them.

``fp32`` equals the plain modules. ``bf16`` holds and multiplies matrices as bfloat16. ``int8``
holds the matrices of the LSTM and the highways as integers with a scale per row, and quantizes
their inputs row by row. Gates and cell state are always fp32; so are sums, except in int8 (32-bit
integers) and in PyTorch's bf16 (rounded at the end).
"""

import logging
from typing import cast

import torch

from elmokit.bilm.bilm import BiLM
from elmokit.errors import InputError
from elmokit.field_checks import check_choice
from elmokit.inference.backend import Network, Precision
from elmokit.inference.kernel_backend import PackedNetwork
from elmokit.inference.torch_backend import ModuleNetwork
from elmokit.kernels.forking import use_one_thread_after_a_fork
from elmokit.kernels.inference import load_kernels

log = logging.getLogger(__name__)


def check_precision(precision: str) -> Precision:
    """Return ``precision``; raise `InputError` with the choices if it is unknown."""
    return cast(Precision, check_choice(precision, Precision, name="precision"))


def pick_device(device: str | torch.device) -> torch.device:
    """Return the torch device a user chose; ``auto`` is CUDA if available.

    Raises:
        InputError: if PyTorch does not know or does not have the device.
    """
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
        is_there, picked = False, torch.device("cpu")
    if not is_there:
        raise InputError(
            f"device={name!r}: PyTorch cannot compute there; it sees {num_gpus} CUDA device(s) "
            "here. Use 'auto', 'cpu', 'cuda' or 'cuda:1'."
        )
    return picked


def build_network(model: BiLM, *, precision: Precision, device: torch.device) -> Network:
    """Build a network of compiled kernels on the CPU, else of PyTorch, where int8 becomes bf16."""
    use_one_thread_after_a_fork()
    kernels = load_kernels() if device.type == "cpu" else None
    if kernels is not None:
        network = PackedNetwork(model, precision=precision, kernels=kernels)
        quick = "" if precision in kernels.quick_kinds else ", without instructions of its own"
        log.debug("%s through compiled %s%s", precision, network.computed_by, quick)
        return network
    if precision == "int8":
        log.warning("int8 needs the compiled kernels and the CPU: computing in bf16")
    log.debug("%s through PyTorch on %s", "fp32" if precision == "fp32" else "bf16", device)
    return ModuleNetwork(model, use_bf16=precision != "fp32", device=device)
