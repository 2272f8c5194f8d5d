"""`elmokit convert`: from models of other software to a model directory, or back."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from elmokit.cli.output import Result
from elmokit.errors import InputError, counted


def convert(
    paths: Annotated[list[Path], typer.Argument(metavar="[SRC] DST")],
    *,
    options: Path | None = None,
    weights: Path | None = None,
    vocab: Path | None = None,
    softmax: Path | None = None,
    name: str | None = None,
    encoder_only: bool = False,
    dtype: Literal["float32", "float16", "int8"] | None = None,
    overwrite: bool = False,
) -> Result:
    """Convert a model of other software to a model directory; or that to a smaller one, or back.

    Sources: releases and TensorFlow checkpoints of bilm-tf, AllenNLP archives, ELMoForManyLangs
    folders, TF-Hub modules, and zip or tar archives of one of these.

    The result is read back, both models embed a few sentences, and the largest difference is
    printed. Trained mixtures of layers are written to mixes.safetensors in DST.

    Args:
        paths: Source: a folder, archive or file of a kind below, recognized by its contents. Omit
            it if --options and --weights name the source. Destination: a model directory; if the
            source is one, a file *.onnx, with --dtype another model directory, or the folder for
            options.json and weights.hdf5.
        options: Options file: a name in SRC, or a path.
        weights: Weight file, or a checkpoint's prefix: a name in SRC, or a path.
        vocab: Vocabulary; default: vocab.txt, or the only word list in SRC.
        softmax: Separate HDF5 file of the softmax, to read or write.
        name: Which ELMo of an archive that holds several.
        encoder_only: Leave out softmax and vocabulary.
        dtype: How weights are stored; int8 is a quarter of float32, which is the default.
    """
    from elmokit.inference.frozen_bilm import compute_layers
    from elmokit.weights.convert import convert as convert_model

    if len(paths) == 2:
        source = paths[0]
    elif len(paths) == 1 and options is not None and weights is not None:
        source, options, weights = weights, options.absolute(), None
    else:
        raise InputError(
            "convert takes SRC and DST, or --options FILE --weights FILE and DST; got "
            f"{counted(len(paths), 'path')}."
        )
    report = convert_model(
        source, paths[-1], compute=compute_layers, options=options, weights=weights, vocab=vocab,
        softmax=softmax, name=name, encoder_only=encoder_only, dtype=dtype, overwrite=overwrite,
    )  # fmt: skip
    vocabulary = "none" if report.vocabulary is None else counted(report.vocabulary, "word")
    bits = "bit for bit identical" if report.same_bits else "NOT identical"
    difference = f"{report.max_difference:.1e} at most, over {counted(report.num_tokens, 'token')}"
    rows = [
        ("source", f"{report.source} ({report.source_format})"),
        ("destination", f"{report.destination} ({report.destination_format})"),
        ("layers", f"{report.num_layers} of {report.output_dim}"),
        ("parameters", f"{report.num_parameters:,} (without softmax), {bits}"),
        ("vocabulary", vocabulary + (", softmax" if report.softmax else ", no softmax")),
        ("difference", difference),
        ("model hash", report.model_hash),
    ]
    if report.num_mixes:
        rows.append(("mixtures", f"{report.num_mixes} of layers, in mixes.safetensors"))
    rows += [("note", note) for note in report.notes]
    return Result(report, [f"{name:<12} {value}" for name, value in rows])
