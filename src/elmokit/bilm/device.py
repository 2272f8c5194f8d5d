"""The choice of the device."""

import torch

from elmokit.errors import InputError
from elmokit.wording import counted


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
        if chosen.type != "cuda":  # which is checked without starting it
            torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError, ImportError) as error:
        raise InputError(
            f"PyTorch cannot compute on the device {device!r} here. Use 'auto', 'cpu', 'cuda' or "
            "'cuda:1'."
        ) from error
    if chosen.type == "cuda" and chosen.index is not None:
        count = torch.cuda.device_count()
        if chosen.index >= count:
            raise InputError(
                f"device={device!r}: PyTorch sees {counted(count, 'CUDA device')} here, the last "
                f"is 'cuda:{count - 1}'."
            )
    return chosen
