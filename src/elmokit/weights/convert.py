"""Models of other software to a model directory, and back to the original's files or to ONNX."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np

from elmokit.errors import InputError, MissingExtraError, as_input_error
from elmokit.files.atomic import check_target
from elmokit.files.json_files import read_json
from elmokit.weights.arrays import Storage
from elmokit.weights.bilm_tf import StrPath, format_losses, read_original, write_bilm_tf
from elmokit.weights.locate import CONFIG_NAME, OPTIONS_NAME, find_model
from elmokit.weights.model_files import COPY_AGAIN, FILE_NAMES, VOCAB_NAME, check_replaceable
from elmokit.weights.onnx_file import run_onnx, write_onnx
from elmokit.weights.readers.contents import MAX_DEPTH, Choices, files_below, kind_of
from elmokit.weights.readers.registry import read_foreign
from elmokit.weights.readers.tensor_bundle import INDEX_SUFFIX
from elmokit.weights.readers.tensorflow import is_softmax
from elmokit.weights.stored_bilm import StoredBiLM, read_bilm

Compute = Callable[[StoredBiLM, np.ndarray], np.ndarray]
"""Runs a model on ids (B, T, C) or (B, T); returns its layers (L, N, 2D) at the N real tokens."""

SAMPLE_SENTENCES = (
    "The bank raised its rates while we sat on the bank of the river .",
    "배 를 타 고 배 를 먹 으면 배 가 아프 다",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft !",
    "🙂 x",
    "",
)
"""Words joined by spaces: short, long, ASCII, other scripts, longer than a row, none."""
SAMPLE_WORDS = 8
"""Words per sample sentence for models that read word ids."""


@dataclass(frozen=True, kw_only=True)
class ConversionReport:
    """What was converted, and how far the source differs from the re-read destination."""

    source: str
    source_format: str
    """A name of `elmokit.weights.readers.registry.FORMATS`, or ``model directory``."""
    destination: str
    destination_format: Literal["model directory", "options.json + HDF5", "ONNX"]
    num_parameters: int
    """Of the biLM, without the softmax and the padding row."""
    num_layers: int
    """L, with the token layer."""
    output_dim: int
    vocabulary: int | None
    """Number of words, if there is a vocabulary."""
    softmax: bool
    model_hash: str
    """Of the re-read destination."""
    same_bits: bool
    """Whether all parameters equal those of the source bit for bit."""
    num_tokens: int
    """Tokens that ran through both models."""
    max_difference: float
    """Largest difference in any layer on these tokens."""
    losses: tuple[str, ...] = ()
    """What the destination's format cannot hold."""
    num_mixes: int = 0
    """Trained mixtures of layers, written into the model directory as ``mixes.safetensors``."""
    notes: tuple[str, ...] = ()
    """What was assumed or left out in reading the source."""


def convert(
    source: StrPath,
    destination: StrPath,
    *,
    compute: Compute,
    options: StrPath | None = None,
    weights: StrPath | None = None,
    vocab: StrPath | None = None,
    softmax: StrPath | None = None,
    name: str | None = None,
    encoder_only: bool = False,
    dtype: Storage | None = None,
    overwrite: bool = False,
) -> ConversionReport:
    """Convert a model of other software to a model directory, or that to a smaller one or back.

    What the source is follows from its contents (`elmokit.weights.readers`).

    Args:
        source: A model directory; or a folder, one of its files, the prefix of a TensorFlow
            checkpoint, or a zip or tar archive.
        destination: The model directory to write; for a model directory as the source, a file
            ``*.onnx``, with ``dtype`` another model directory, or the folder for the original's two
            files (and ``vocab.txt``, if the model has a vocabulary).
        compute: What runs the source and the re-read destination, to compare them.
        options: Options file, a name in the source's folder or a path; written: its name.
        weights: Likewise the weights.
        vocab: Likewise the vocabulary of a foreign source.
        softmax: Likewise a separate softmax file, read or written.
        name: Which of several models in the source.
        encoder_only: Leave out softmax and vocabulary.
        dtype: How weights are stored (`elmokit.weights.arrays`); default: float32.
        overwrite: Replace a model directory, or files, at the destination.

    Raises:
        FileExistsError: if the destination exists and ``overwrite`` is not set, or if a model
            directory would replace anything else.
        FormatError: if the source is damaged or of no known kind.
        InputError: if the destination cannot hold the model, or an option has no use.
    """
    path, target = (Path(os.path.expanduser(given)) for given in (source, destination))
    if Path() in (path, target):  # "." has no name of its own
        path, target = path.absolute(), target.absolute()
    path, is_onnx = _model_of(path), target.suffix.lower() == ".onnx"
    files = {"options": options, "weights": weights, "vocab": vocab, "softmax": softmax}
    if _is_model_dir(path):
        unused = {"name": name, "encoder_only": encoder_only or None, "vocab": vocab}
        if is_onnx or dtype is not None:
            unused |= files
        if is_onnx:
            unused["dtype"] = dtype
        if names := [key for key, value in unused.items() if value is not None]:
            raise InputError(
                f"{path} is a model directory, for which `{names[0]}` has no use here."
            )
        if is_onnx:
            return _to_onnx(path, target, compute, overwrite=overwrite)
        if dtype is None:
            return _to_original(path, target, files, compute, overwrite=overwrite)
        _check_destination(path, target, overwrite=overwrite)
        return _to_model_dir(read_bilm(path), target, dtype, compute, source=str(path))
    if is_onnx:
        raise InputError(
            f"ONNX is written from a model directory: convert {path} to one first, then that to "
            f"{target}."
        )
    if path.is_file() and (kind := kind_of(path)) != "archive":
        # a file that says nothing of the weights, such as JSON, stands for its folder
        role = {"options": "options", "word list": "vocab", "JSON": None, "id list": None}
        if (option := role.get(kind, "weights")) is not None:
            files[option] = files[option] or path.name
    _check_destination(path if path.is_dir() else path.parent, target, overwrite=overwrite)
    paths = {
        key: None if value is None else Path(os.path.expanduser(value))
        for key, value in files.items()
    }
    choices = Choices(**paths, name=name, encoder_only=encoder_only)
    kind, imported = read_foreign(path, choices, scratch=target.absolute().parent)
    return _to_model_dir(
        imported.model, target, dtype or "float32", compute, source=f"{path}: {imported.origin}",
        source_format=kind, notes=imported.notes,
    )  # fmt: skip


def _model_of(path: Path) -> Path:
    """Return the index of a checkpoint's prefix or data, the folder of a TF-Hub module, or a path.

    What does not exist may be the name of a packaged model.
    """
    index = Path(f"{path}{INDEX_SUFFIX}")
    if index.is_file() and not path.exists():
        return index
    if not path.is_file():
        return find_model(path)
    if path.name == "saved_model.pb":
        return path.parent
    index = path.with_name(re.sub(r"\.data-\d+-of-\d+$", INDEX_SUFFIX, path.name))
    return index if index.is_file() else path


def _is_model_dir(path: Path) -> bool:
    config = path / CONFIG_NAME
    return config.exists() and "model_type" in read_json(config, advice=COPY_AGAIN)


def _check_destination(source: Path, target: Path, *, overwrite: bool) -> None:
    """Refuse to replace the source, or anything that is no model directory."""
    if target.resolve() == source.resolve():
        raise InputError(f"{target} is the source: give another destination.")
    check_replaceable(target)
    if (target / CONFIG_NAME).exists() and not overwrite:
        raise FileExistsError(
            f"{target} holds a model already. Replace it with --overwrite, or give another name."
        )


def _to_model_dir(
    model: StoredBiLM, target: Path, dtype: Storage, compute: Compute, **of_source: Any
) -> ConversionReport:
    with as_input_error():  # numbers that are too large for the format
        model.rounded_to(dtype).save(target, dtype=dtype)
    written = read_bilm(target)
    num_mixes = 0 if written.mixes is None else len(written.mixes.gammas)
    fields = of_source | {"destination": str(target), "num_mixes": num_mixes}
    return _report("model directory", model, written, compute, **fields)


def _to_original(
    source: Path,
    target: Path,
    files: dict[str, StrPath | None],
    compute: Compute,
    *,
    overwrite: bool,
) -> ConversionReport:
    options_path = target / (files["options"] or OPTIONS_NAME)
    weights_path = target / (files["weights"] or "weights.hdf5")
    vocab_path = options_path.parent / VOCAB_NAME
    softmax_path = None if files["softmax"] is None else target / files["softmax"]
    targets = [path for path in (options_path, weights_path, vocab_path, softmax_path) if path]
    for path in targets:
        check_target(path, inputs=[source / name for name in FILE_NAMES], overwrite=overwrite)
    if (target / CONFIG_NAME).exists():
        raise FileExistsError(
            f"{target} is a model directory, which the export would spoil. Give another one."
        )
    # the softmax of another model in the folder would be read with the new weights
    for path in files_below(target, MAX_DEPTH):
        if path not in targets and kind_of(path) == "HDF5" and is_softmax(path):
            raise FileExistsError(
                f"{path} holds a softmax, which would be read with the new weights. Remove it, or "
                "give another destination."
            )
    model = read_bilm(source)
    write_bilm_tf(model, options_path, weights_path, softmax=softmax_path, vocab=vocab_path)
    vocab = None if model.word_vocab is None else vocab_path
    written = read_original(options_path, weights_path, vocab=vocab, softmax=softmax_path)
    return _report(
        "options.json + HDF5", model, written, compute, source=str(source),
        destination=f"{options_path}, {weights_path}", losses=tuple(format_losses(model)),
    )  # fmt: skip


def _to_onnx(source: Path, target: Path, compute: Compute, *, overwrite: bool) -> ConversionReport:
    """Write an ONNX file, and compare what ONNX Runtime computes with the model."""
    check_target(target, inputs=[source / name for name in FILE_NAMES], overwrite=overwrite)
    if find_spec("onnxruntime") is None:  # better missed before the file is written
        raise MissingExtraError("onnxruntime", extra="onnx")
    model = read_bilm(source)
    write_onnx(model, target)
    report = _report(
        "ONNX", model, model, compute, source=str(source), destination=str(target),
        read_again=lambda ids: run_onnx(target, ids),
    )  # fmt: skip
    return replace(report, vocabulary=None, softmax=False)


def _report(
    destination_format: Any,
    before: StoredBiLM,
    after: StoredBiLM,
    compute: Compute,
    *,
    read_again: Callable[[np.ndarray], np.ndarray] | None = None,
    source_format: str = "model directory",
    **fields: Any,
) -> ConversionReport:
    """Compare a model and what was read again; ``read_again`` runs what is no `StoredBiLM`."""
    ids = _sample_ids(before)
    old = compute(before, ids)
    new = compute(after, ids) if read_again is None else read_again(ids)
    arrays, written = before.arrays(), after.arrays()
    same_bits = arrays.keys() == written.keys() and all(
        np.array_equal(array.view(np.int32), written[name].view(np.int32))
        for name, array in arrays.items()
    )
    return ConversionReport(
        source_format=source_format, destination_format=destination_format,
        num_parameters=after.num_parameters(), num_layers=after.num_layers,
        output_dim=after.output_dim,
        vocabulary=None if after.word_vocab is None else len(after.word_vocab),
        softmax=after.num_target_words is not None, model_hash=after.model_hash(),
        same_bits=same_bits, num_tokens=old.shape[1],
        max_difference=float(np.abs(old - new).max()), **fields,
    )  # fmt: skip


def _sample_ids(model: StoredBiLM) -> np.ndarray:
    if model.config.num_words is None:
        words = [sentence.split() for sentence in SAMPLE_SENTENCES]
        return model.ids_of_sentences(words, boundaries=True)
    # words from all over the vocabulary
    ids = np.linspace(1, model.config.num_words, 3 * SAMPLE_WORDS).astype(np.int64)
    return ids.reshape(3, SAMPLE_WORDS)
