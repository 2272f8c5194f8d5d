"""`elmokit merge`: one embedding file from the files of all shards."""

from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli.output import emit_json
from elmokit.embed.formats.registry import suffixes
from elmokit.wording import counted


def merge(
    shards: Annotated[list[Path], typer.Argument(metavar="SHARD")],
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help=f"Output file: {', '.join(suffixes())}."
        ),
    ],
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Merge the files of `embed --shard i/N` into one file.

    Checks that the files were made by the same command, and that none is missing.

    Args:
        shards: All files of `embed --shard i/N`, in any order.
        overwrite: Replace OUT.
    """
    from elmokit.embed.merge import merge_shards

    report = merge_shards(shards, output, overwrite=overwrite)
    if json:
        emit_json(report)
        return
    typer.echo(f"output      {report.output}, from {counted(report.shards, 'shard')}")
    typer.echo(f"sentences   {report.sentences:,}")
    typer.echo(f"words       {report.words:,}")
