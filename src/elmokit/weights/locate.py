"""From a path or model name to a model directory."""

import logging
import os
from functools import cache
from pathlib import Path

from elmokit.files.atomic import previous_of

log = logging.getLogger(__name__)

CONFIG_NAME = "config.json"
"""The file that identifies a model directory."""
DEFAULT_MODEL = "en"
"""The packaged model used if none is named."""
PACKAGED_MODELS = Path(__file__).parent.parent / "data" / "models"


def packaged_models() -> list[str]:
    """Return the names of the models in the package."""
    return sorted(path.parent.name for path in PACKAGED_MODELS.glob(f"*/{CONFIG_NAME}"))


def find_model(name_or_path: str | os.PathLike[str] | None = None) -> Path:
    """Return a model directory by path or by the name of a packaged model; default: English.

    A model directory with the name of a packaged model takes precedence, with a warning.

    Raises:
        FileNotFoundError: if neither exists, or the path is a file; the message lists the places
            searched.
    """
    if name_or_path is None:
        return PACKAGED_MODELS / DEFAULT_MODEL
    path, names = Path(name_or_path).expanduser(), packaged_models()
    if path.is_file():
        raise FileNotFoundError(
            f"{path} is a file; give the model directory that holds {CONFIG_NAME}."
        )
    named = os.fspath(name_or_path) in names
    if (path / CONFIG_NAME).exists() or (path.exists() and not named):
        if named:
            _warn_of_two(path.absolute())
        return path
    if named:
        return PACKAGED_MODELS / name_or_path
    place = "not there"
    if (previous := previous_of(path)).exists():
        place += f"; a save was interrupted: the previous model is whole in {previous}, rename it"
    raise FileNotFoundError(
        f"There is no model {os.fspath(name_or_path)!r}. Looked for:\n"
        f"  a directory {path.absolute()}: {place}\n"
        f"  a model of this name in the package: it has {', '.join(names)}\n"
        "Check the path; `elmokit pretrain CORPUS -o DIR` makes a model directory."
    )


@cache
def _warn_of_two(path: Path) -> None:
    message = "using %s, not the packaged model %r. For that one, work in another folder."
    log.warning(message, path, path.name)


def lasting_name(directory: Path) -> str:
    """Return a name to find the model again: that of a packaged model, else the full path."""
    resolved = directory.resolve()
    return resolved.name if resolved.parent == PACKAGED_MODELS.resolve() else str(resolved)


def path_of(lasting: str) -> str:
    """Return the directory for a `lasting_name`, from any working directory."""
    return str(PACKAGED_MODELS / lasting) if lasting in packaged_models() else lasting
