"""From what the user typed to a model directory."""

import os
from pathlib import Path

CONFIG_NAME = "config.json"
"""The file that makes a directory a model directory."""


def find_model(name_or_path: str | os.PathLike[str] | None = None) -> Path:
    """Return the model directory that ``name_or_path`` means.

    Args:
        name_or_path: A path; none: the model in the package.

    Raises:
        FileNotFoundError: if there is nothing of that name; the message says where was looked.
    """
    if name_or_path is None:
        raise FileNotFoundError(
            "No model was named, and this version of elmokit has none in the package.\n"
            "Give the path of a model directory; `elmokit pretrain CORPUS -o DIR` makes one from "
            "text, `elmokit convert SRC DIR`\nfrom the original's options.json and HDF5 weights."
        )
    path = Path(name_or_path).expanduser()
    if path.exists():
        return path
    raise FileNotFoundError(
        f"There is no model {os.fspath(name_or_path)!r}. Looked for:\n"
        f"  a directory {path.absolute()}: not there\n"
        f"  a model of this name in the package: this version has none\n"
        "Check the path; `elmokit pretrain CORPUS -o DIR` makes a model directory."
    )
