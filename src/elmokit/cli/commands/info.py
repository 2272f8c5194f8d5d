"""`elmokit info`: what a model, run or file is; `cache`: what is stored for later."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from elmokit.cli.output import Result
from elmokit.errors import InputError

_MAX_CHARACTERS = 200
"""Of a list of files and the like; --json has all."""


def info(paths: Annotated[list[str], typer.Argument(metavar="PATH")]) -> Result:
    """Show what a model, run or file is and how it was made.

    Prints kind, version, hash, sizes, tokenizer and normalization, as far as the files record them.

    Args:
        paths: Model (directory, or en or ko), task run (directory, or the name of a packaged
            tagger), experiment, shards, vocabulary, embedding file, word vectors, table of
            surprisal, exported model (HDF5, ONNX) or explorer page.
    """
    from elmokit.cli.info_by_kind import describe

    items = [describe(path) for path in paths]
    lines: list[str] = []
    for item in items:
        lines += [*([""] if lines else []), *_rows(item)]
    return Result({"items": items}, lines)


def _rows(description: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    width = max(16, *(len(key) + 2 for key in description))
    for key, value in description.items():
        if value in (None, "", {}, []):
            continue
        if isinstance(value, Mapping):
            yield f"{indent}{key}"
            yield from _rows(value, indent + "  ")
        else:
            yield f"{indent}{key:{width}}{_shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        value = ", ".join(map(_shown, value))
    text = str(value)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"


def cache(*, clear: bool = False) -> Result:
    """Show or clear compiled kernels and cached biLM layers.

    The layer cache holds up to 10 GB; the least recently used entries are removed first.

    Args:
        clear: Remove the entries; they are made again as needed.
    """
    from elmokit.files.temporary import cache_dir, cache_entries, remove_entry, remove_leftovers
    from elmokit.kernels.build import LIBRARY_PATTERN
    from elmokit.tasks.inputs.layer_cache import ENTRY_PATTERN, LIMIT_BYTES

    stores: dict[str, dict[str, Any]] = {}
    lines, remaining = list[str](), list[str]()
    for name, folder, pattern, limit in (
        ("kernels", "native", LIBRARY_PATTERN, None),
        ("layers", "layers", ENTRY_PATTERN, LIMIT_BYTES),
    ):
        directory = cache_dir(folder)
        entries = cache_entries(directory, pattern)
        if clear and directory.is_dir():
            for entry in entries:
                remove_entry(entry)
            remove_leftovers(directory)
            remaining += [str(entry.path) for entry in entries if entry.path.exists()]
        num_bytes = sum(entry.num_bytes for entry in entries)
        stores[name] = {
            "path": directory, "entries": len(entries), "bytes": num_bytes, "limit_bytes": limit
        }  # fmt: skip
        of_most = "" if limit is None else f" of at most {limit / 1e6:,.0f} MB"
        change = ", removed" if clear else ""
        counts = f"{len(entries):6,d} entries {num_bytes / 1e6:10,.1f} MB{of_most}{change}"
        lines.append(f"{name:8}{counts}   {directory}")
    if remaining:
        raise InputError(
            f"Could not be removed: {', '.join(remaining[:3])} ({len(remaining):,} in all). "
            "They are of another user, or the place is read-only."
        )
    return Result({"cleared": clear, **stores}, lines)
