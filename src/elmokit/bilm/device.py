"""Where to compute: one choice for all commands and classes."""

import torch


def pick_device(device: str) -> torch.device:
    """Return the torch device for a user's choice; ``auto`` is CUDA where there is one.

    Raises:
        ValueError: if there is no such device, or CUDA is asked for and PyTorch sees none.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r}: PyTorch sees no CUDA device here. Use device='cpu' or 'auto'."
        )
    try:
        return torch.device(device)
    except RuntimeError as error:
        raise ValueError(
            f"device={device!r} is no device of PyTorch. Use 'auto', 'cpu', 'cuda' or 'cuda:1'."
        ) from error
