"""What a copy of the page consists of; the page as a folder of static files, with models inside."""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from elmokit.errors import InputError, quoted
from elmokit.files.atomic import atomic_directory
from elmokit.files.json_files import json_bytes
from elmokit.version import __version__
from elmokit.web.page.models import (
    COMPRESSED,
    MADE_FILES,
    MAX_BYTES,
    MAX_NAMED,
    MAX_TOP,
    MAX_WORDS,
    STATIC,
    ExploredModel,
    load_explored,
)
from elmokit.weights.model_files import VOCAB_NAME, WEIGHTS_NAME

CATALOG_NAME = "explorer.json"
"""What the page can show, computed where."""
SPLITTER_NAME = "packs/korean.json.gz"
"""What splits Korean without Kiwi."""
ExportedWeights = Literal["int6", "int8", "stored"]


@dataclass(frozen=True)
class ExportReport:
    """What was written."""

    output: Path
    """The directory."""
    models: list[str]
    num_files: int
    num_bytes: int


def catalog(
    models: Sequence[ExploredModel],
    *,
    served: bool,
    runs: Iterable[str] = (),
    tasks: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the contents of ``explorer.json`` (Catalog in ``compute/client.js``).

    ``tasks`` has the task of each task run by the name of the run.
    """
    return {
        "version": __version__,
        "compute": "server" if served else "browser",
        "limits": {
            "max_words": MAX_WORDS,
            "max_bytes": MAX_BYTES,
            "max_top": MAX_TOP,
            "max_named": MAX_NAMED,
        },
        "models": [model.entry(served=served) for model in models],
        "runs": [{"name": name, "title": name} for name in runs],
        "tasks": [{"name": n, "title": n, "task": task} for n, task in (tasks or {}).items()],
    }


def page_files(
    content: dict[str, Any], models: Sequence[ExploredModel]
) -> dict[str, Callable[[], bytes]]:
    """Return how to read each file of a copy of the page, by its path in it."""
    catalog_bytes = json_bytes(content)
    static = [path for path in STATIC.rglob("*") if path.is_file()]
    files = {path.relative_to(STATIC).as_posix(): path.read_bytes for path in static}
    if all(entry["tokenizer"] != "close" for entry in content["models"]):
        del files[SPLITTER_NAME]
    files[CATALOG_NAME] = lambda: catalog_bytes
    for model in models:
        folder = f"models/{model.name}"
        files |= {f"{folder}/{path.name}": path.read_bytes for path in model.paths()}
        files |= {f"{folder}/{name}": partial(model.made_file, name) for name in MADE_FILES}
    return files


def export_explorer(
    names: Sequence[str], directory: Path, *, weights: ExportedWeights = "int6"
) -> ExportReport:
    """Write the page and models, whole or not at all, into a directory that is new or empty.

    Args:
        names: Models, by directory or name.
        directory: Where to write.
        weights: ``int6`` and ``int8`` round the weights (`elmokit.weights.arrays`) and compress
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
    rounded = model.model.rounded_to(weights)
    rounded.save(folder, dtype=weights)
    for path in (folder / WEIGHTS_NAME, folder / VOCAB_NAME):
        if path.exists():
            path.with_name(path.name + COMPRESSED).write_bytes(_gzip(path.read_bytes()))
            path.unlink()
    return ExploredModel(model.name, folder, rounded)


def _gzip(content: bytes) -> bytes:
    """Compress as small as may be: rounded weights do not repeat, so matches are not looked for."""
    results = []
    for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY):
        encoder = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS, 9, strategy)
        results.append(encoder.compress(content) + encoder.flush())
    return min(results, key=len)


def check_empty(directory: Path) -> None:
    """Refuse a directory with anything in it, and a file, before any work."""
    if directory.is_file() or (directory.is_dir() and any(directory.iterdir())):
        raise FileExistsError(f"{directory} exists and is not empty. Give a new directory.")
