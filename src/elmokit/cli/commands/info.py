"""`elmokit info`: what a model, run or file is."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json


def info(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Model (directory, or en or ko), task run (directory, or the name of a packaged "
            "tagger), experiment, shards, embedding file or word vectors.",
        ),
    ],
    *,
    json: options.JsonOption = False,
) -> None:
    """Show what a model, run or file is and what made it.

    Kind, version, hash, sizes, tokenizer and normalization, as far as the files say.
    """
    from elmokit.cli.descriptions import describe

    found = [describe(path) for path in paths]
    if json:
        emit_json({"items": found})
        return
    for number, description in enumerate(found):
        if number:
            typer.echo("")
        _print(description)


def _print(description: Mapping[str, Any], indent: str = "") -> None:
    width = max(16, *(len(key) + 2 for key in description))
    for key, value in description.items():
        if value in (None, "", {}, []):
            continue
        if isinstance(value, Mapping):
            typer.echo(f"{indent}{key}")
            _print(value, indent + "  ")
        else:
            typer.echo(f"{indent}{key:{width}}{_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
