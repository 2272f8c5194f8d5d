"""`elmokit info`: what a model, run or file is; `cache`: what is stored for later."""

from typing import Annotated, Any

import typer

from elmokit.cli.output import Result, rows_of


def info(paths: Annotated[list[str], typer.Argument(metavar="PATH")]) -> Result:
    """Show what a model, run or file is and how it was made.

    Prints kind, version, hash, sizes, tokenizer and normalization, as far as the files record them.

    Args:
        paths: Model (directory, or en or ko), task run (directory, or the name of a packaged
            tagger), experiment, shards, vocabulary, embedding file, word vectors, table of
            surprisal, exported model (HDF5, ONNX) or explorer page.
    """
    from elmokit.cli.descriptions import describe

    items = [describe(path) for path in paths]
    lines: list[str] = []
    for item in items:
        lines += [*([""] if lines else []), *rows_of(item)]
    return Result({"items": items}, lines)


def cache(*, clear: bool = False) -> Result:
    """Show or clear compiled kernels and cached biLM layers.

    The layer cache holds up to 10 GB; the least recently used entries are removed first.

    Args:
        clear: Remove the entries; they are made again as needed.
    """
    from elmokit.files.temporary import cache_dir, cache_entries, remove_entry
    from elmokit.kernels.build import LIBRARY_PATTERN
    from elmokit.tasks.inputs.layer_cache import ENTRY_PATTERN, LIMIT_BYTES

    stores: dict[str, dict[str, Any]] = {}
    for name, folder, pattern, limit in (
        ("kernels", "native", LIBRARY_PATTERN, None),
        ("layers", "layers", ENTRY_PATTERN, LIMIT_BYTES),
    ):
        directory = cache_dir(folder)
        entries = cache_entries(directory, pattern)
        for entry in entries if clear else ():
            remove_entry(entry)
        stores[name] = {
            "path": directory, "entries": len(entries),
            "bytes": sum(entry.num_bytes for entry in entries), "limit_bytes": limit,
        }  # fmt: skip
    return Result({"cleared": clear, **stores})
