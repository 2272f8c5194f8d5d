"""From what the user typed to a model directory."""

import logging
import os
from functools import cache
from pathlib import Path

log = logging.getLogger(__name__)

CONFIG_NAME = "config.json"
"""The file that makes a directory a model directory."""
DEFAULT_MODEL = "en"
"""Name of the model in the package that is meant where none is named."""
PACKAGED_MODELS = Path(__file__).parent.parent / "data" / "models"
"""Where the package keeps its models, a directory each."""


def packaged_models() -> list[str]:
    """Return the names of the models in the package."""
    return sorted(path.parent.name for path in PACKAGED_MODELS.glob(f"*/{CONFIG_NAME}"))


def find_model(name_or_path: str | os.PathLike[str] | None = None) -> Path:
    """Return the model directory that ``name_or_path`` means.

    Args:
        name_or_path: A path, or the name of a model in the package; a model directory of that name
            goes first, with a warning. None: the English model in the package.

    Raises:
        FileNotFoundError: if there is nothing of that name; the message says where was looked.
    """
    if name_or_path is None:
        return PACKAGED_MODELS / DEFAULT_MODEL
    path, names = Path(name_or_path).expanduser(), packaged_models()
    named = os.fspath(name_or_path) in names
    if (path / CONFIG_NAME).exists() or (path.exists() and not named):
        if named:
            _warn_of_two(path.absolute())
        return path
    if named:
        return PACKAGED_MODELS / name_or_path
    raise FileNotFoundError(
        f"There is no model {os.fspath(name_or_path)!r}. Looked for:\n"
        f"  a directory {path.absolute()}: not there\n"
        f"  a model of this name in the package: it has {', '.join(names)}\n"
        "Check the path; `elmokit pretrain CORPUS -o DIR` makes a model directory."
    )


@cache
def _warn_of_two(path: Path) -> None:
    log.warning(
        "%s is taken, not the model %r of the package. For that one work in another folder.",
        path, path.name,
    )  # fmt: skip


def lasting_name(directory: Path) -> str:
    """Return what finds a model again: its name, if it is in the package; else its whole path."""
    resolved = directory.resolve()
    return resolved.name if resolved.parent == PACKAGED_MODELS.resolve() else str(resolved)


def path_of(lasting: str) -> str:
    """Return the directory that a `lasting_name` is of, wherever one works now."""
    return str(PACKAGED_MODELS / lasting) if lasting in packaged_models() else lasting
