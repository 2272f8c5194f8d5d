"""Pictures by matplotlib (extra ``plots``), in files that are there whole or not at all."""

from pathlib import Path
from typing import Any

from elmokit.errors import InputError, MissingExtraError
from elmokit.files.atomic import atomic_file

PICTURE_SUFFIXES = (".png", ".pdf", ".svg")
DOTS_PER_INCH = 150


def check_matplotlib() -> None:
    """Raise `MissingExtraError` if matplotlib is not installed."""
    _figure_class()


def check_picture_name(path: Path) -> None:
    """Raise `InputError` if a picture of this name cannot be written."""
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        allowed = ", ".join(PICTURE_SUFFIXES)
        raise InputError(f"The suffix of the plot must be one of {allowed}; got {path.name!r}.")


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of so many inches; it needs no display."""
    figure_class = _figure_class()
    return figure_class(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", extra="plots") from error
    return Figure


def write_picture(figure: Any, path: Path) -> None:
    """Write a figure in the format that the suffix names."""
    with atomic_file(path) as temp_path:
        figure.savefig(temp_path, format=path.suffix.lower()[1:])
