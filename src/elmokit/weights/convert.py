"""Models of other software to a model directory, and back to the original's files or to ONNX."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from elmokit.errors import FormatError, InputError, MissingExtraError
from elmokit.files.atomic import check_target
from elmokit.files.json_files import read_json
from elmokit.weights.bilm_tf import (
    StrPath,
    check_distinct,
    format_losses,
    read_bilm_tf,
    write_bilm_tf,
)
from elmokit.weights.locate import CONFIG_NAME, find_model
from elmokit.weights.model_dir import PretrainedBiLM, load_model
from elmokit.weights.model_files import (
    FILE_NAMES,
    VOCAB_NAME,
    WEIGHTS_NAME,
    check_replaceable,
)
from elmokit.weights.onnx_file import run_onnx, write_onnx
from elmokit.weights.readers.bilm_tf_release import is_softmax
from elmokit.weights.readers.contents import MAX_DEPTH, Choices, files_below, kind_of
from elmokit.weights.readers.registry import read_foreign
from elmokit.weights.readers.tensor_bundle import INDEX_SUFFIX
from elmokit.weights.storage import Storage

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
OPTIONS_NAME = "options.json"
"""Of the original's files, by default."""
_FILE_SUFFIXES = (".h5", ".hdf5", ".safetensors", ".bin", ".npz", ".pt", ".th", ".ckpt", ".gz")
"""Suffixes of files, which would be odd names of folders."""
_DATA_SUFFIX = re.compile(r"\.data-\d+-of-\d+$")
_HUB_NAME = "saved_model.pb"


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
    options: StrPath | None = None,
    weights: StrPath | None = None,
    vocab: StrPath | None = None,
    softmax: StrPath | None = None,
    name: str | None = None,
    encoder_only: bool = False,
    dtype: Storage | None = None,
    overwrite: bool = False,
) -> ConversionReport:
    """Convert a model of other software to a model directory, or that to bilm-tf or ONNX.

    What the source is follows from its contents (`elmokit.weights.readers`).

    Args:
        source: A model directory; or a folder, one of its files, the prefix of a TensorFlow
            checkpoint, or a zip or tar archive.
        destination: The model directory to write; for a model directory as the source, a file
            ``*.onnx``, or the folder for the original's two files (and ``vocab.txt``, if the model
            has a vocabulary).
        options: Options file, a name in the source's folder or a path; written: its name.
        weights: Likewise the weights.
        vocab: Likewise the vocabulary of a foreign source.
        softmax: Likewise a separate softmax file, read or written.
        name: Which of several models in the source.
        encoder_only: Leave out softmax and vocabulary.
        dtype: How ONNX stores weights (`elmokit.weights.onnx_file.write_onnx`); default: float32.
        overwrite: Replace a model directory, or files, at the destination.

    Raises:
        FileExistsError: if the destination exists and ``overwrite`` is not set, or if a model
            directory would replace anything else.
        FileNotFoundError: if there is no such source.
        FormatError: if the source is damaged or of no known kind.
        ValueError: if the destination's format cannot hold the model, the source would be
            replaced, or an option has no use.
    """
    path, target = (
        given.resolve() if given == Path() else given  # the working directory has no name as "."
        for given in (Path(os.path.expanduser(one)) for one in (source, destination))
    )
    if dtype is not None and target.suffix != ".onnx":
        raise InputError(
            f"`dtype` (--dtype) is for ONNX files (*.onnx), got the destination {target}."
        )
    if target.suffix.lower() in _FILE_SUFFIXES and not target.is_dir():
        raise InputError(
            f"{target} is the name of a file, but what is written is a folder of several. Give a "
            "name without such an ending; only ONNX is one file (.onnx)."
        )
    if Path(f"{path}{INDEX_SUFFIX}").is_file() and not path.exists():
        path = Path(f"{path}{INDEX_SUFFIX}")
    elif not path.is_file():
        path = find_model(source)
    else:
        path = _named_by(path)
    if path.is_dir() and _may_be_model_dir(path):
        if name is not None or encoder_only:
            raise InputError("--name and --encoder-only have no use for a model directory.")
        if target.suffix == ".onnx":
            if {options, weights, vocab, softmax} != {None}:
                raise InputError("An ONNX file has no options, weights, vocabulary or softmax.")
            return _to_onnx(path, target, dtype or "float32", overwrite=overwrite)
        return _to_original(path, target, options, weights, vocab, softmax, overwrite=overwrite)
    if path.is_file() and (kind := kind_of(path)) != "archive":
        if kind == "options":
            options = options or path.name
        elif kind == "word list":
            vocab = vocab or path.name
        elif kind not in ("JSON", "id list"):  # these stand for the folder
            weights = weights or path.name
    if target.suffix == ".onnx":
        raise InputError(
            f"ONNX is written from a model directory: convert {path} to one first, then that to "
            f"{target}."
        )
    folder = path if path.is_dir() else path.parent
    _check_destination(folder, target, (options, weights, vocab, softmax), overwrite=overwrite)
    choices = Choices(
        options=_path(options), weights=_path(weights), vocab=_path(vocab), softmax=_path(softmax),
        name=name, encoder_only=encoder_only,
    )  # fmt: skip
    kind, imported = read_foreign(path, choices, scratch=target.absolute().parent)
    imported.model.mixes = imported.mixes
    imported.model.save(target)
    report = _report(
        imported.model, load_model(target), f"{path}: {imported.origin}", str(target), kind
    )
    num_mixes = 0 if imported.mixes is None else len(imported.mixes.gammas)
    return replace(report, num_mixes=num_mixes, notes=imported.notes)


def _named_by(file: Path) -> Path:
    """Return the index of a TensorFlow data file, the folder of a TF-Hub module, else the file."""
    if file.name == _HUB_NAME:
        return file.parent
    index = file.with_name(_DATA_SUFFIX.sub(INDEX_SUFFIX, file.name))
    return index if index.is_file() else file


def _path(given: StrPath | None) -> Path | None:
    return None if given is None else Path(os.path.expanduser(given))


def _may_be_model_dir(path: Path) -> bool:
    """Tell whether a folder is a model directory, perhaps a damaged one."""
    if not (path / CONFIG_NAME).exists():
        return False
    if (path / WEIGHTS_NAME).exists():
        return True
    try:
        return "model_type" in read_json(path / CONFIG_NAME, advice="")
    except FormatError:
        return False


def _check_destination(
    source: Path, target: Path, given: Iterable[StrPath | None], *, overwrite: bool
) -> None:
    """Refuse to replace an input, or anything that is no model directory."""
    inputs = [path for path in given if path is not None]
    inputs += [source / path for path in inputs]
    inputs += source.iterdir()
    for path in (target / name for name in FILE_NAMES):
        check_target(path, inputs=[one for one in inputs if not Path(one).is_dir()], overwrite=True)
    check_replaceable(target)
    if (target / CONFIG_NAME).exists() and not overwrite:
        raise FileExistsError(
            f"{target} holds a model already. Replace it with --overwrite, or give another name."
        )


def _to_original(
    source: Path,
    destination: Path,
    options: StrPath | None,
    weights: StrPath | None,
    vocab: StrPath | None,
    softmax: StrPath | None,
    *,
    overwrite: bool,
) -> ConversionReport:
    if vocab is not None:
        raise InputError(
            f"{source} is a model directory and has its own vocabulary; a vocabulary can be given "
            "only for a source in the original format."
        )
    options_path = destination / (options or OPTIONS_NAME)
    weights_path = destination / (weights or "weights.hdf5")
    vocab_path = options_path.parent / VOCAB_NAME
    softmax_path = None if softmax is None else destination / softmax
    written_paths = [options_path, weights_path, vocab_path, softmax_path]
    check_distinct(
        options=options_path, weights=weights_path, vocabulary=vocab_path, softmax=softmax_path
    )
    for path in written_paths:
        if path is not None:
            check_target(path, inputs=[source / name for name in FILE_NAMES], overwrite=overwrite)
    model = load_model(source)
    if destination.is_dir():
        _check_no_other_softmax(destination, written_paths)
    write_bilm_tf(model, options_path, weights_path, softmax=softmax_path, vocab=vocab_path)
    if model.word_vocab is not None:
        vocab = vocab_path
    written = read_bilm_tf(options_path, weights_path, vocab=vocab, softmax=softmax_path)
    report = _report(
        model, written, str(source), f"{options_path}, {weights_path}", "model directory"
    )
    return replace(
        report, destination_format="options.json + HDF5", losses=tuple(format_losses(model))
    )


def _check_no_other_softmax(folder: Path, written: Sequence[Path | None]) -> None:
    """Refuse to write beside the softmax of another model, which would be read with the weights."""
    for path in files_below(folder, MAX_DEPTH):
        if path not in written and kind_of(path) == "HDF5" and is_softmax(path):
            raise FileExistsError(
                f"{path} holds a softmax, which would be read with the new weights. Remove it, or "
                "give another destination."
            )


def _to_onnx(source: Path, target: Path, dtype: Storage, *, overwrite: bool) -> ConversionReport:
    """Write an ONNX file, and compare what ONNX Runtime computes with the model, rounded or not."""
    check_target(target, inputs=[source / name for name in FILE_NAMES], overwrite=overwrite)
    if find_spec("onnxruntime") is None:  # better missed before the file is written
        raise MissingExtraError("onnxruntime", extra="onnx")
    model = load_model(source)
    write_onnx(model, target, dtype=dtype)
    ids = _sample_ids(model)
    with torch.inference_mode():
        expected = model.eval()(ids)
    found = run_onnx(target, ids)
    return ConversionReport(
        source=str(source),
        source_format="model directory",
        destination=str(target),
        destination_format="ONNX",
        num_parameters=model.num_parameters(),
        num_layers=model.num_layers,
        output_dim=model.output_dim,
        vocabulary=None,
        softmax=False,
        model_hash=model.model_hash(),
        same_bits=dtype == "float32",
        num_tokens=int(expected.mask.sum()),
        max_difference=float((expected.layers - found).abs().max()),
    )


def _report(
    before: PretrainedBiLM, after: PretrainedBiLM, source: str, destination: str, kind: str
) -> ConversionReport:
    old_ids, new_ids = _sample_ids(before), _sample_ids(after)
    with torch.inference_mode():
        old, new = before.eval()(old_ids), after(new_ids)
    return ConversionReport(
        source=source,
        destination=destination,
        source_format=kind,
        destination_format="model directory",
        num_parameters=after.num_parameters(),
        num_layers=after.num_layers,
        output_dim=after.output_dim,
        vocabulary=None if after.word_vocab is None else len(after.word_vocab),
        softmax=after.softmax is not None,
        model_hash=after.model_hash(),
        same_bits=_same_bits(before, after),
        num_tokens=int(new.mask.sum()),
        max_difference=float((old.layers - new.layers).abs().max()),
    )


def _sample_ids(model: PretrainedBiLM) -> Int[Tensor, "B T C"] | Int[Tensor, "B T"]:
    """Encode the sample sentences, or take word ids from all over the vocabulary."""
    if model.config.num_words is None:
        return model.encode([sentence.split() for sentence in SAMPLE_SENTENCES])
    ids = np.linspace(1, model.config.num_words, 3 * SAMPLE_WORDS).astype(np.int64)
    return torch.from_numpy(ids.reshape(3, SAMPLE_WORDS))


def _same_bits(before: PretrainedBiLM, after: PretrainedBiLM) -> bool:
    old, new = before.state_dict(), after.state_dict()
    return old.keys() == new.keys() and all(
        torch.equal(old[name].view(torch.int32), new[name].view(torch.int32)) for name in old
    )
