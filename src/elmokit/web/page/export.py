"""The page as a folder of static files, with models inside, for any web server."""

import shutil
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from elmokit.errors import InputError
from elmokit.files.atomic import atomic_directory
from elmokit.files.json_files import json_bytes
from elmokit.files.location import quoted
from elmokit.web.page.catalog import (
    CATALOG_NAME,
    COMPRESSED,
    MADE_FILES,
    ExploredModel,
    catalog,
    load_explored,
)
from elmokit.web.page.prepared import STATIC
from elmokit.web.page.text_rules import RULES_NAME, text_rules
from elmokit.weights.model_files import FILE_MANAGER_FILES, VOCAB_NAME, WEIGHTS_NAME

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
    """Write the page and models, whole or not at all.

    Args:
        names: Models, by directory or name.
        directory: Where to write; it must not exist, or be empty.
        weights: ``int6`` and ``int8`` round the weights (`elmokit.weights.storage`) and compress
            them; all numbers of the page are then those of the rounded model. ``stored`` copies
            the files as they are.

    Raises:
        FileExistsError, NotADirectoryError: if ``directory`` exists and is not empty, or is a file.
        InputError: if a browser cannot run one of the models.
        FileNotFoundError, FormatError, ConfigError: as `load_model`.
    """
    check_empty(directory)
    models = load_explored(names)
    for one in models:
        if reason := one.why_not_in_browser():
            raise InputError(
                f"A browser cannot run the model {one.name}: {reason}. Serve the page instead: "
                f"elmokit explore --model {quoted(one.directory)}"
            )
    with atomic_directory(directory) as fresh:
        shutil.copytree(STATIC, fresh, dirs_exist_ok=True, copy_function=shutil.copyfile)
        (fresh / RULES_NAME).write_bytes(json_bytes(text_rules(), indent=None))
        copies = [_write_model(one, fresh / "models" / one.name, weights) for one in models]
        (fresh / CATALOG_NAME).write_bytes(json_bytes(catalog(copies, served=False)))
        written = [path for path in fresh.rglob("*") if path.is_file()]
        report = ExportReport(
            directory, [one.name for one in models], len(written),
            sum(path.stat().st_size for path in written),
        )  # fmt: skip
    return report


def _write_model(one: ExploredModel, folder: Path, weights: ExportedWeights) -> ExploredModel:
    """Write a model and what is computed from it; return the model as it is written."""
    folder.mkdir(parents=True)
    if weights == "stored":
        for path in one.files():
            shutil.copyfile(path, folder / path.name)
    else:
        one.model.round_to(weights)
        one.model.save(folder, dtype=weights)
        for path in (folder / WEIGHTS_NAME, folder / VOCAB_NAME):
            if path.exists():
                path.with_name(path.name + COMPRESSED).write_bytes(_gzip(path.read_bytes()))
                path.unlink()
    copy = ExploredModel(one.name, folder, one.model)
    for name in MADE_FILES:
        (folder / name).write_bytes(copy.made_file(name))
    return copy


def _gzip(content: bytes) -> bytes:
    """Compress as small as may be: rounded weights do not repeat, so matches are not looked for."""
    found: list[bytes] = []
    for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY):
        encoder = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS, 9, strategy)
        found.append(encoder.compress(content) + encoder.flush())
    return min(found, key=len)


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
