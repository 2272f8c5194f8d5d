"""The choice of the device."""

import torch

from elmokit.errors import InputError


def pick_device(device: str | torch.device) -> torch.device:
    """Return the torch device a user chose; ``auto`` is CUDA if available.

    Raises:
        InputError: if PyTorch does not know or does not have the device.
    """
    device = str(device)
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(
            f"device={device!r}: PyTorch sees no CUDA device here. Use device='cpu' or 'auto'."
        )
    try:
        chosen = torch.device(device)
        if chosen.type != "cuda":  # which is checked above
            torch.empty(0, device=chosen)
        return chosen
    except (RuntimeError, AssertionError, NotImplementedError, ImportError) as error:
        raise InputError(
            f"PyTorch cannot compute on the device {device!r} here. Use 'auto', 'cpu', 'cuda' or "
            "'cuda:1'."
        ) from error
