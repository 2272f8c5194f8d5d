"""The choice of the device."""

import torch

from elmokit.errors import InputError


def pick_device(device: str) -> torch.device:
    """Return the torch device a user chose; ``auto`` is CUDA if available.

    Raises:
        InputError: if PyTorch does not know or does not have the device.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(
            f"device={device!r}: PyTorch sees no CUDA device here. Use device='cpu' or 'auto'."
        )
    try:
        return torch.device(device)
    except RuntimeError as error:
        raise InputError(
            f"PyTorch knows no device {device!r}. Use 'auto', 'cpu', 'cuda' or 'cuda:1'."
        ) from error
