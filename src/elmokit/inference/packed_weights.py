"""The packed weights of a biLM that may change between calls."""

import torch
from torch import Tensor

from elmokit.bilm.bilm import BiLM
from elmokit.inference.frozen_bilm import FrozenBiLM
from elmokit.kernels.inference import load_kernels


class PackedWeights:
    """Keeps a biLM's weights packed for the kernels, and packs them again after a change.

    A change through ``weight.data`` or NumPy, which PyTorch does not count, is noticed if it
    reaches a whole tensor. Copies and pickles hold no weights; they pack their own.
    """

    def __init__(self) -> None:
        self._packed: tuple[FrozenBiLM, object] | None = None

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return PackedWeights, ()

    def of(self, bilm: BiLM) -> FrozenBiLM | None:
        """Return the biLM with packed weights; none where it must run as plain modules.

        Other devices and types of numbers, graphs that are being compiled or traced, and modules
        with forward hooks run as they are.
        """
        is_tracing = torch.jit.is_tracing  # pyright: ignore[reportPrivateImportUsage]
        if torch.compiler.is_compiling() or is_tracing():
            return None
        modules = list(bilm.modules())
        weights = [w for one in modules for w in one._parameters.values() if w is not None]
        is_plain = all(w.is_cpu and w.dtype == torch.float32 for w in weights) and not any(
            one._forward_hooks or one._forward_pre_hooks for one in modules
        )
        if not is_plain or load_kernels() is None:  # which says so
            return None
        version = [
            (w.data_ptr(), 0 if w.is_inference() else w._version, _sample(w)) for w in weights
        ]
        if self._packed is None or self._packed[1] != version:
            self._packed = FrozenBiLM(bilm, word_cache=True), version
        return self._packed[0]


def _sample(weight: Tensor) -> bytes:
    """Return some 64 values from all over a tensor; the odd step leaves no columns aside."""
    return weight.detach().numpy().flat[:: weight.numel() // 64 | 1].tobytes()
