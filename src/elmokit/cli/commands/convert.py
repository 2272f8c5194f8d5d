"""`elmokit convert`: original options.json + HDF5 to a model directory, or back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli.options import JsonOption, OverwriteOption
from elmokit.cli.output import emit_json
from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.weights.convert import ConversionReport


def convert(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="[SRC] DST",
            help="Source: a model directory, or a folder with [*]options.json and [*]weights.hdf5; "
            "omit it if --options and --weights name the source. Destination: the other format.",
        ),
    ],
    *,
    options: Annotated[
        Path | None, typer.Option(help="Original options file: a file name in SRC, or a path.")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Original weight file: a file name in SRC, or a path.")
    ] = None,
    vocab: Annotated[
        Path | None,
        typer.Option(help="Original vocabulary; default: vocab.txt beside the options file."),
    ] = None,
    softmax: Annotated[
        Path | None,
        typer.Option(help="Separate HDF5 file of the softmax, to read or write."),
    ] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Convert original options.json + HDF5 weights to a model directory, or back.

    The source determines the direction. The result is read back, both models embed a few
    sentences, and the largest difference is printed.
    """
    from elmokit.weights.convert import OriginalFiles
    from elmokit.weights.convert import convert as convert_model

    if len(paths) == 2:
        source, files = paths[0], {"options": options, "weights": weights}
    elif len(paths) == 1 and options is not None and weights is not None:
        source, files = OriginalFiles(options, weights), {}
    else:
        raise InputError(
            "convert takes SRC and DST, or --options FILE --weights FILE and DST; got "
            f"{len(paths)} path(s)."
        )
    report = convert_model(
        source, paths[-1], vocab=vocab, softmax=softmax, overwrite=overwrite, **files
    )
    if as_json:
        emit_json(report)
    else:
        typer.echo(_describe(report))


def _describe(report: "ConversionReport") -> str:
    vocabulary = "none" if report.vocabulary is None else f"{report.vocabulary:,} words"
    bits = "bit for bit identical" if report.same_bits else "NOT identical"
    rows = [
        ("source", report.source),
        ("destination", f"{report.destination} ({report.destination_format})"),
        ("layers", f"{report.num_layers} of {report.output_dim}"),
        ("parameters", f"{report.num_parameters:,} (without softmax), {bits}"),
        ("vocabulary", vocabulary + (", softmax" if report.softmax else ", no softmax")),
        ("difference", f"{report.max_difference:.1e} at most, over {report.num_tokens} tokens"),
        ("model hash", report.model_hash),
    ]
    return "\n".join(f"{name:<12} {value}" for name, value in rows)
