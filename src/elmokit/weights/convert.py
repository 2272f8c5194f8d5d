"""Original files to a model directory, or back, with a proof that nothing changed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from elmokit.errors import FormatError, InputError
from elmokit.files.atomic import check_target
from elmokit.weights.bilm_tf import StrPath, format_losses, read_bilm_tf, write_bilm_tf
from elmokit.weights.locate import CONFIG_NAME, find_model
from elmokit.weights.model_dir import PretrainedBiLM, load_model
from elmokit.weights.model_files import FILE_NAMES, VOCAB_NAME, check_replaceable

SAMPLE_SENTENCES = (
    "The bank raised its rates while we sat on the bank of the river .",
    "배 를 타고 배 를 먹으면 배 가 아프다",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft !",
    "🙂 x",
    "",
)
"""Words joined by spaces: short, long, ASCII, other scripts, longer than a row, none."""
SAMPLE_WORDS = 8
"""Words per sample sentence for models that read word ids."""


@dataclass(frozen=True)
class OriginalFiles:
    """The two files of a model in the original format."""

    options: Path
    weights: Path

    def __str__(self) -> str:
        return f"{self.options}, {self.weights}"


@dataclass(frozen=True, kw_only=True)
class ConversionReport:
    """What was converted, and how far the source differs from the re-read destination."""

    source: str
    destination: str
    destination_format: Literal["model directory", "options.json + HDF5"]
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
    losses: tuple[str, ...]
    """What the destination's format cannot hold."""


def find_original(
    directory: StrPath, *, options: StrPath | None = None, weights: StrPath | None = None
) -> OriginalFiles:
    """Find the files in a folder: by their names, else by the standard names.

    These are ``options.json`` or the only ``*options.json``, and likewise ``weights.hdf5``. Raises
    `FileNotFoundError` if there is none, or more than one to choose from.
    """
    folder = Path(directory)
    return OriginalFiles(
        folder / options if options is not None else _only(folder, "options.json", "--options"),
        folder / weights if weights is not None else _only(folder, "weights.hdf5", "--weights"),
    )


def convert(
    source: StrPath | OriginalFiles,
    destination: StrPath,
    *,
    options: StrPath | None = None,
    weights: StrPath | None = None,
    vocab: StrPath | None = None,
    softmax: StrPath | None = None,
    overwrite: bool = False,
) -> ConversionReport:
    """Convert a model in the original format to a model directory, or a model directory back.

    Args:
        source: A model directory, a folder with the original's two files, or these files.
        destination: The model directory to write, or the folder for the original's two files (and
            ``vocab.txt``, if the model has a vocabulary).
        options: Name of the options file in the original's folder; default: ``options.json``.
        weights: Name of the weight file there; default: ``weights.hdf5``.
        vocab: Vocabulary of a source in the original format; default: its ``vocab.txt``, if any.
        softmax: Softmax file in the original format, read or written.
        overwrite: Replace a model directory, or files, at the destination.

    Raises:
        FileExistsError: if the destination exists and ``overwrite`` is not set, or if a model
            directory would replace anything else.
        FileNotFoundError: if there is no such source.
        FormatError: if the source is damaged.
        ValueError: if the destination's format cannot hold the model, or the source would be
            replaced.
    """
    if not isinstance(source, OriginalFiles):
        directory = find_model(source)
        if (directory / CONFIG_NAME).exists():
            return _to_original(
                directory, Path(destination), options, weights, vocab, softmax, overwrite=overwrite
            )
        source = find_original(directory, options=options, weights=weights)
    beside = source.options.parent / VOCAB_NAME
    if vocab is None and beside.exists():
        vocab = beside
    target = Path(destination).expanduser()
    inputs = [path for path in (source.options, source.weights, vocab, softmax) if path is not None]
    for path in (target / name for name in FILE_NAMES):
        check_target(path, inputs=inputs, overwrite=True)
    check_replaceable(target)
    if (target / CONFIG_NAME).exists() and not overwrite:
        raise FileExistsError(
            f"{target} holds a model already. Replace it with --overwrite, or give another name."
        )
    model = read_bilm_tf(source.options, source.weights, vocab=vocab, softmax=softmax)
    model.save(destination)
    return _report(model, load_model(destination), str(source), str(destination), original=False)


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
    files = OriginalFiles(
        destination / (options or "options.json"), destination / (weights or "weights.hdf5")
    )
    vocab_path = files.options.parent / VOCAB_NAME
    softmax_path = None if softmax is None else destination / softmax
    for path in (files.options, files.weights, vocab_path, softmax_path):
        if path is not None:
            check_target(path, inputs=[source / name for name in FILE_NAMES], overwrite=overwrite)
    model = load_model(source)
    write_bilm_tf(model, files.options, files.weights, softmax=softmax_path)
    if model.word_vocab is not None:
        model.word_vocab.write(vocab_path)
        vocab = vocab_path
    written = read_bilm_tf(files.options, files.weights, vocab=vocab, softmax=softmax_path)
    return _report(model, written, str(source), str(files), original=True)


def _report(
    before: PretrainedBiLM, after: PretrainedBiLM, source: str, destination: str, *, original: bool
) -> ConversionReport:
    old_ids, new_ids = _sample_ids(before), _sample_ids(after)
    with torch.inference_mode():
        old, new = before.eval()(old_ids), after(new_ids)
    return ConversionReport(
        source=source,
        destination=destination,
        destination_format="options.json + HDF5" if original else "model directory",
        num_parameters=after.num_parameters(),
        num_layers=after.num_layers,
        output_dim=after.output_dim,
        vocabulary=None if after.word_vocab is None else len(after.word_vocab),
        softmax=after.softmax is not None,
        model_hash=after.model_hash(),
        same_bits=_same_bits(before, after),
        num_tokens=int(new.mask.sum()),
        max_difference=float((old.layers - new.layers).abs().max()),
        losses=tuple(format_losses(before)) if original else (),
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


def _only(folder: Path, name: str, option: str) -> Path:
    """Return ``folder/name``, or the only file whose name ends in it, ignoring softmax files."""
    if (folder / name).exists():
        return folder / name
    found = [path for path in sorted(folder.glob(f"*{name}")) if "softmax" not in path.name]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(path.name for path in found)
        raise FileNotFoundError(f"{folder} has several *{name}: {names}. Say which with {option}.")
    if not folder.is_dir():
        raise FormatError(f"{folder} is neither a model directory nor a folder with *{name}.")
    raise FileNotFoundError(
        f"{folder} has no {CONFIG_NAME} (a model directory) and no {name} or *{name} (the "
        f"original format). If the file has another name, give it with {option}."
    )
