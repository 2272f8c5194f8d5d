"""The arithmetic of inference: which precisions there are, and what computes them here.

``fp32`` equals the plain modules. ``bf16`` holds matrices as bfloat16 and multiplies in it.
``int8`` holds the matrices of the LSTM and the highways as whole multiples of a scale for each row,
and quantizes what they are multiplied with row by row. Gates and cell state are fp32 in all of
them; sums are, too, but for int8 (32-bit integers) and PyTorch's bf16 (rounded at the end).

On the processor the compiled kernels (`elmokit.inference.kernel_backend`) compute all three.
Without a compiler, and on other devices, PyTorch does (`elmokit.inference.torch_backend`), and int8
becomes bf16. What was chosen is said in the log.
"""

import logging
from typing import cast, get_args

import torch

from elmokit.bilm.bilm import BiLM
from elmokit.inference.backend import Network, Precision
from elmokit.inference.kernel_backend import PackedNetwork
from elmokit.inference.torch_backend import ModuleNetwork
from elmokit.kernels.inference import load_kernels

log = logging.getLogger(__name__)


def check_precision(precision: str) -> Precision:
    """Return ``precision`` if it is one of the choices.

    Raises:
        ValueError: if it is not; the message has the choices.
    """
    if precision not in get_args(Precision):
        allowed = " or ".join(repr(choice) for choice in get_args(Precision))
        raise ValueError(f"`precision` must be {allowed}, got {precision!r}.")
    return cast(Precision, precision)


def build_network(model: BiLM, *, precision: Precision, device: torch.device) -> Network:
    """Take the parts of ``model`` that inference needs; the model itself stays as it is."""
    kernels = load_kernels() if device.type == "cpu" else None
    if kernels is not None:
        network = PackedNetwork(model, precision=precision, kernels=kernels)
        quick = "" if precision in kernels.quick_kinds else ", without instructions of its own"
        log.info("%s through compiled %s%s", precision, network.computed_by, quick)
        return network
    if precision == "int8":
        log.warning("int8 needs the compiled kernels and the processor: computing in bf16")
    log.info("%s through PyTorch on %s", "fp32" if precision == "fp32" else "bf16", device)
    return ModuleNetwork(model, use_bf16=precision != "fp32", device=device)
