"""`elmokit cache`: what is kept in the user's cache folder."""

import re

import typer

from elmokit.cli.output import emit_json


def cache(
    *,
    clear: bool = False,
    json: bool = False,
) -> None:
    """Show or clear compiled kernels and cached biLM layers; show outputs not sent yet.

    The layer cache holds up to 10 GB, or as much as the environment variable ELMOKIT_LAYER_CACHE_GB
    allows; the least recently used entries are removed first. Finished outputs that could not be
    sent to object storage are kept: the same command with --resume sends them.

    Args:
        clear: Remove the entries; they are made again as needed.
    """
    from elmokit.files.cache_dir import cache_dir, cache_entries, remove_entry
    from elmokit.files.temporary import LOCK_NAME
    from elmokit.kernels.build import LIBRARY_PATTERN
    from elmokit.tasks.inputs.layer_cache import ENTRY_PATTERN, size_limit

    found = {}
    for name, directory, pattern, limit in (
        ("kernels", cache_dir("native"), LIBRARY_PATTERN, None),
        ("layers", cache_dir("layers"), ENTRY_PATTERN, size_limit()),
    ):
        entries = cache_entries(directory, pattern)
        for entry in entries if clear else ():
            remove_entry(entry)
        num_bytes = sum(entry.num_bytes for entry in entries)
        found[name] = {
            "path": directory, "entries": len(entries), "bytes": num_bytes, "limit_bytes": limit
        }  # fmt: skip
    folder = cache_dir("uploads")
    # finished outputs, and the folders with the finished part of others
    of_one = (
        cache_entries(one, rf"(?!{re.escape(LOCK_NAME)}$)(?s:.+)") for one in folder.glob("*")
    )
    waiting = [entry for entries in of_one for entry in entries]
    found["unsent"] = {
        "path": folder, "entries": len(waiting),
        "bytes": sum(entry.num_bytes for entry in waiting), "limit_bytes": None,
    }  # fmt: skip
    if json:
        emit_json({"cleared": clear, **found})
        return
    for name, one in found.items():
        most = one["limit_bytes"]
        limit = "" if most is None else f" of at most {most / 1e6:,.0f} MB"
        counts = f"{one['entries']:6,d} entries {one['bytes'] / 1e6:10,.1f} MB{limit}"
        what = ", kept" if name == "unsent" else ", removed"
        typer.echo(f"{name:8}{counts}{what if clear else ''}   {one['path']}")
