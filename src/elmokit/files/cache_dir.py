"""Where elmokit caches files."""

import os
from pathlib import Path

from elmokit.errors import InputError


def cache_dir(name: str) -> Path:
    """Return ``$XDG_CACHE_HOME/elmokit/NAME`` (or under ``~/.cache``), which may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(base or Path.home() / ".cache") / "elmokit" / name
    except RuntimeError as error:
        raise InputError(
            f"There is no cache directory: {error} Set XDG_CACHE_HOME to a writable directory."
        ) from error
