"""Compiled kernels for the processor: built on first use, never needed.

`elmokit.kernels.build` turns the C files beside it into a library with the machine's own compiler;
where that is not possible, or switched off by ``ELMOKIT_NATIVE=0``, the callers use PyTorch.
"""
