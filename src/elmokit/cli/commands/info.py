"""`elmokit info`: what a model, run or file is."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from elmokit.cli.error_messages import is_user_error, print_error
from elmokit.cli.output import emit_json

_MAX_ROWS = 10
"""Of a list of files and the like; --json has all."""


def info(
    paths: Annotated[list[str], typer.Argument(metavar="PATH")],
    *,
    json: bool = False,
) -> None:
    """Show what a model, run or file is and how it was made.

    Prints kind, version, hash, sizes, tokenizer and normalization, as far as the files record them,
    with numbers rounded to four significant digits, large ones to whole numbers; --json has all
    digits.
    A PATH that cannot be described is reported (with --json, also as `error` in its place); the
    others follow, and the exit code is 2.

    Args:
        paths: Model (directory, or en or ko), task run (directory, or the name of a packaged
            tagger), experiment, shards, vocabulary, embedding file, word vectors, table of
            surprisal or of occurrences, exported model (directory, HDF5, ONNX) or explorer page.
    """
    from elmokit.cli.descriptions import describe

    items: list[dict[str, Any]] = []
    failed = False
    for path in paths:
        try:
            items.append(describe(path))
        except Exception as error:
            if not is_user_error(error) or len(paths) == 1:
                raise
            failed = True
            items.append({"path": path, "error": str(error)})
            print_error(error, debug=False)
            continue
        if not json:
            if len(items) > 1:
                typer.echo("")
            _print(items[-1])
    if json:
        emit_json({"items": items})
    if failed:
        raise typer.Exit(2)


def _print(description: Mapping[str, Any], indent: str = "") -> None:
    width = max(16, *(len(key) + 2 for key in description))
    for key, value in description.items():
        if value in (None, "", {}, []):
            continue
        if isinstance(value, Mapping):
            typer.echo(f"{indent}{key}")
            _print(value, indent + "  ")
        elif isinstance(value, list | tuple) and any(isinstance(one, Mapping) for one in value):
            typer.echo(f"{indent}{key}")
            for one in value[:_MAX_ROWS]:
                typer.echo(f"{indent}  {_shown(one)}")
            if (more := len(value) - _MAX_ROWS) > 0:
                typer.echo(f"{indent}  … and {more:,} more")
        else:
            typer.echo(f"{indent}{key:{width}}{_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
    if isinstance(value, Mapping):
        text = ", ".join(f"{key} {_shown(one)}" for key, one in value.items())
    elif isinstance(value, list | tuple):
        parts = (f"[{_shown(v)}]" if isinstance(v, list | tuple) else _shown(v) for v in value)
        text = ", ".join(parts)
    else:
        text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
