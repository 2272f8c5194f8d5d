"""The arithmetic of inference: which weights are held, and what the products compute in.

``fp32`` uses the model's own modules. ``bf16`` holds matrices as bfloat16 and multiplies in
bfloat16 (sums inside a product, gates and cell state stay fp32); it runs on every processor and is
faster where the processor has instructions for it.
"""

import copy
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal, cast, get_args

import torch
from torch import nn

from elmokit.nn.bilm import BiLM, BiLMConfig
from elmokit.nn.lstmp import LSTMP

Precision = Literal["fp32", "bf16"]
"""Choices of arithmetic."""


def check_precision(precision: str) -> Precision:
    """Return ``precision`` if it is one of the choices.

    Raises:
        ValueError: if it is not; the message has the choices.
    """
    if precision not in get_args(Precision):
        allowed = " or ".join(repr(choice) for choice in get_args(Precision))
        raise ValueError(f"`precision` must be {allowed}, got {precision!r}.")
    return cast(Precision, precision)


@dataclass(frozen=True)
class Network:
    """The modules that inference runs, in the chosen precision on the chosen device."""

    config: BiLMConfig
    precision: Precision
    device: torch.device
    token_encoder: nn.Module
    forward_layers: tuple[LSTMP, ...]
    backward_layers: tuple[LSTMP, ...]

    def arithmetic(self) -> AbstractContextManager:
        """Return the context in which the modules must be called."""
        if self.precision == "fp32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)


def build_network(model: BiLM, *, precision: Precision, device: torch.device) -> Network:
    """Take the parts of ``model`` that inference needs; the model itself stays as it is.

    Modules are shared with the model where nothing has to be converted (fp32 on the model's device)
    and copied otherwise.
    """

    def convert(module: nn.Module) -> nn.Module:
        parameter = next(module.parameters())
        if precision == "fp32" and parameter.device == device:
            return module
        module = copy.deepcopy(module).to(device)
        if precision == "bf16":
            for weight in module.parameters():
                if weight.dim() > 1:  # biases stay as they are
                    weight.data = weight.data.to(torch.bfloat16)
        return module

    return Network(
        config=model.config,
        precision=precision,
        device=device,
        token_encoder=convert(model.token_encoder),
        forward_layers=tuple(cast(LSTMP, convert(layer)) for layer in model.forward_layers),
        backward_layers=tuple(cast(LSTMP, convert(layer)) for layer in model.backward_layers),
    )
