"""The page as a folder of static files, with models inside, for any web server."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from elmokit.errors import InputError
from elmokit.files.atomic import atomic_directory
from elmokit.web.page.catalog import (
    COMPRESSED,
    ExploredModel,
    catalog,
    load_explored,
    page_files,
)
from elmokit.weights.model_files import FILE_MANAGER_FILES, VOCAB_NAME, WEIGHTS_NAME
from elmokit.wording import quoted

ExportedWeights = Literal["int6", "int8", "stored"]


@dataclass(frozen=True)
class ExportReport:
    """What was written."""

    output: Path
    """The directory."""
    models: list[str]
    num_files: int
    num_bytes: int


def export_explorer(
    names: Sequence[str], directory: Path, *, weights: ExportedWeights = "int6"
) -> ExportReport:
    """Write the page and models, whole or not at all, into a directory that is new or empty.

    Args:
        names: Models, by directory or name.
        directory: Where to write.
        weights: ``int6`` and ``int8`` round the weights (`elmokit.weights.storage`) and compress
            them; all numbers of the page are then those of the rounded model. ``stored`` copies
            the files as they are.
    """
    check_empty(directory)
    models = load_explored(names)
    for model in models:
        if reason := model.why_not_in_browser():
            raise InputError(
                f"A browser cannot run the model {model.name}: {reason}. Serve the page instead: "
                f"elmokit explore --model {quoted(model.directory)}"
            )
    with atomic_directory(directory) as fresh:
        if weights != "stored":
            models = [_rounded(model, fresh / "models" / model.name, weights) for model in models]
        num_bytes, files = 0, page_files(catalog(models, served=False), models)
        for name, read in files.items():
            content = read()
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_bytes(content)
            num_bytes += len(content)
    return ExportReport(directory, [model.name for model in models], len(files), num_bytes)


def _rounded(model: ExploredModel, folder: Path, weights: Literal["int6", "int8"]) -> ExploredModel:
    """Round a model, and write it into its folder."""
    model.model.round_to(weights)
    model.model.save(folder, dtype=weights)
    for path in (folder / WEIGHTS_NAME, folder / VOCAB_NAME):
        if path.exists():
            path.with_name(path.name + COMPRESSED).write_bytes(_gzip(path.read_bytes()))
            path.unlink()
    return ExploredModel(model.name, folder, model.model)


def _gzip(content: bytes) -> bytes:
    """Compress as small as may be: rounded weights do not repeat, so matches are not looked for."""
    results = []
    for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY):
        encoder = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS, 9, strategy)
        results.append(encoder.compress(content) + encoder.flush())
    return min(results, key=len)


def check_empty(directory: Path) -> None:
    """Refuse a directory with anything in it, and a file, before any work."""
    if directory.exists() and not directory.is_dir():
        raise NotADirectoryError(f"{directory} is a file, not a directory. Give a new directory.")
    names = sorted(path.name for path in directory.iterdir()) if directory.is_dir() else []
    foreign = [name for name in names if name not in FILE_MANAGER_FILES]
    if foreign:
        raise FileExistsError(
            f"{directory} exists and is not empty (it holds {foreign[0]!r}): not overwritten. Give "
            "a new directory."
        )
