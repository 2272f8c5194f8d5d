"""Read and write the original implementation's files: ``options.json`` and HDF5 weights.

`bilm_tf_options` explains the options, `bilm_tf_layout` the datasets. Biases are kept as stored
(the forget gate's 1 is added at run time), so that reading and writing gives the same bits.
"""

import copy
import json
import logging
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.softmax import AdaptiveSoftmax
from elmokit.errors import FormatError, InputError
from elmokit.files.atomic import StrPath, atomic_files, reserve
from elmokit.files.bounded import check_growth
from elmokit.files.hdf5 import Hdf5File, open_hdf5
from elmokit.files.json_files import json_bytes
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.version import __version__
from elmokit.weights.array_source import ArraySource, StoredArray
from elmokit.weights.bilm_tf_layout import (
    SOFTMAX_NAMES,
    Arrays,
    Dataset,
    bilm_layout,
    softmax_layout,
)
from elmokit.weights.bilm_tf_options import (
    ORIGINAL_OPTIONS,
    first_dataset,
    options_of,
    parse_options,
    parse_softmax,
    read_options,
)
from elmokit.weights.model_dir import PretrainedBiLM
from elmokit.weights.result_metadata import METADATA_KEY, FileKind
from elmokit.weights.tensor_files import WithoutStorage, check_finite

logger = logging.getLogger(__name__)

_BILM_PREFIXES = ("char_embed", "embedding", "CNN", "RNN", "rnn")


def read_bilm_tf(
    options: StrPath,
    weights: StrPath,
    *,
    vocab: StrPath | None = None,
    softmax: StrPath | None = None,
) -> PretrainedBiLM:
    """Read a model in the original format (bilm-tf, AllenNLP), in evaluation mode.

    Words are encoded as in the original: no Unicode normalization, cut at any byte, split at white
    space.

    Args:
        options: Options of training or of inference (``n_characters`` 261 or 262).
        weights: The HDF5 weights.
        vocab: Needed for perplexity, and by a word-input model to encode words.
        softmax: HDF5 with ``softmax/W`` and ``softmax/b``, if not in ``weights``.

    Raises:
        FileNotFoundError: if a file is missing.
        FormatError: if a file is damaged, an option is missing or impossible, or a dataset is
            missing or has another shape than the options say.
    """
    source = Path(options)
    data = read_options(source)
    with ExitStack() as files:
        file = files.enter_context(_open_weights(Path(weights), *first_dataset(data)))
        output = None
        if softmax is not None:
            output = files.enter_context(_open_weights(Path(softmax), SOFTMAX_NAMES[0], "(V, P)"))
        return build_bilm(data, file, source=source, vocab=vocab, output=output)


def build_bilm(
    data: Mapping[str, Any],
    arrays: ArraySource,
    *,
    source: Path,
    vocab: StrPath | None = None,
    output: ArraySource | None = None,
) -> PretrainedBiLM:
    """Build a model of options and of arrays in the original's layout, in evaluation mode.

    Args:
        data: The options.
        arrays: The biLM, and the softmax if it is there.
        source: File of the options, for messages.
        vocab: The vocabulary.
        output: The softmax, if it is elsewhere.

    Raises:
        FormatError: as `read_bilm_tf`.
    """
    try:
        word_vocab = None if vocab is None else WordVocab.read(vocab)
    except FormatError as error:
        raise FormatError(
            f"{error} The encoder alone does without: `elmokit convert --encoder-only`."
        ) from error
    _check_input_kind(data, arrays, source)
    config = parse_options(data, source=source, matrix_shape=partial(_matrix_shape, arrays))
    softmax = arrays if output is None else output
    num_words = None
    if output is not None or any(name in arrays for name in SOFTMAX_NAMES):
        shape = f"(V, {config.lstm.projection_dim})"
        num_words = _matrix_shape(softmax, SOFTMAX_NAMES[0], shape)[0]
    if word_vocab is not None:
        _check_vocab(word_vocab, vocab, num_words, f"softmax/W of {softmax.path}")
        _check_vocab(word_vocab, vocab, config.num_words, f"embedding of {arrays.path}")
    model = _build(data, config, word_vocab, num_words, source=source)
    tensors = _read_tensors([*bilm_layout(config)], arrays)
    if num_words is not None:
        tensors |= _read_tensors([*softmax_layout(config, num_words)], softmax)
    _check_no_surplus(arrays, config)
    model.load_state_dict(tensors, assign=True)
    return model.eval()


def write_bilm_tf(
    model: PretrainedBiLM,
    options: StrPath,
    weights: StrPath,
    *,
    softmax: StrPath | None = None,
    vocab: StrPath | None = None,
) -> None:
    """Write a model in the original format; all of its files appear, or those before them stay.

    A model that was read from this format gives the same datasets, bit for bit, and the same
    options. What the format cannot hold (normalization, tokenizer) is logged as a warning. The
    softmax goes into its own file ``softmax``, or into ``weights``, where other readers ignore it,
    as they do the metadata: an attribute with the hash, tokenizer and normalization of ``model``.
    (Read back, it has another hash if the format cannot hold its normalization.) The words go to
    ``vocab``, if given; without any, that file is removed.

    Raises:
        InputError: for an adaptive softmax, which the format cannot hold, if ``softmax`` is given
            for a model without one, and if two of the files are the same.
    """
    check_distinct(options=options, weights=weights, softmax=softmax, vocabulary=vocab)
    if isinstance(model.softmax, AdaptiveSoftmax):
        raise InputError(
            "The original format has no adaptive softmax. Write the model without its output layer "
            "(model.softmax = None), or train it with a full or sampled softmax."
        )
    if model.config.lexicon is not None:
        raise InputError(
            "The original format has only characters that are bytes; this model reads characters "
            "and words by lists (config.json, `lexicon`)."
        )
    if softmax is not None and model.softmax is None:
        raise InputError(
            f"`softmax` is {os.fspath(softmax)!r}, a file for the output layer, but the model has "
            "none (model.softmax is None). Leave out `softmax`."
        )
    for loss in format_losses(model):
        logger.warning("%s: %s", os.fspath(weights), loss)
    arrays = {
        name: tensor.detach().to("cpu", torch.float32).numpy()
        for name, tensor in model.state_dict().items()
    }
    metadata = model.metadata()
    layout, output = list(bilm_layout(model.config)), []
    if model.softmax is not None:
        output = list(softmax_layout(model.config, model.softmax.num_words))
    others = [Path(path) for path in (weights, softmax, vocab) if path is not None]
    with atomic_files(Path(options), *others) as temp_paths:
        if softmax is None:
            layout += output
        else:
            _write_hdf5(temp_paths[Path(softmax)], output, arrays, metadata)
        _write_hdf5(temp_paths[Path(weights)], layout, arrays, metadata)
        if vocab is not None and model.word_vocab is not None:
            model.word_vocab.write(temp_paths[Path(vocab)])
        temp_paths[Path(options)].write_bytes(json_bytes(options_of(model), indent=2))


def check_distinct(**files: StrPath | None) -> None:
    """Check that files to write, by what they are, are different ones."""
    given = {name: Path(path) for name, path in files.items() if path is not None}
    if len({path.resolve() for path in given.values()}) < len(given):
        *first, last = given
        raise InputError(
            f"{', '.join(first).capitalize()} and {last} need files of their own, got "
            f"{', '.join(str(path) for path in given.values())}."
        )


def format_losses(model: PretrainedBiLM) -> list[str]:
    """List what the original format cannot hold of this model, a sentence each."""
    losses = []
    vocab = model.config.char_vocab
    if model.config.char_cnn is not None and vocab.normalization != "none":
        losses.append(
            f"the format has no place for normalization={vocab.normalization!r}: readers must "
            "normalize the text first, or words in another form get other vectors."
        )
    if model.config.char_cnn is not None and vocab.truncation != "byte":
        losses.append(
            f"the format has no place for truncation={vocab.truncation!r}: readers cut words of "
            f"more than {vocab.max_characters - 2} bytes anywhere, even inside a character."
        )
    if model.tokenizer.name != "whitespace":
        losses.append(
            f"the format has no place for the tokenizer ({model.tokenizer.name!r}): readers split "
            "at white space, so tokenize the text beforehand."
        )
    if model.warm_text:
        losses.append("the format has no place for the warm-up text.")
    return losses


# --- reading


def _open_weights(path: Path, first: str, expected: str) -> AbstractContextManager[Hdf5File]:
    if not path.exists():
        raise FileNotFoundError(f"There is no weight file {path}.")
    return open_hdf5(path, expected=f"Dataset `{first}` of shape {expected} was expected first.")


def _check_input_kind(data: Mapping[str, Any], file: ArraySource, source: Path) -> None:
    if data.get("char_cnn") is None and "embedding" not in file and "char_embed" in file:
        raise FormatError(
            f"{source}: `char_cnn` is missing, but {file.path} holds `char_embed`: the options "
            "describe a word-input model, the weights are those of a character model."
        )


def _build(
    data: Mapping[str, Any],
    config: BiLMConfig,
    word_vocab: WordVocab | None,
    num_words: int | None,
    *,
    source: Path,
) -> PretrainedBiLM:
    """Return the model without its weights."""
    try:
        with WithoutStorage():
            return PretrainedBiLM(
                config,
                word_vocab=word_vocab,
                softmax_config=None if num_words is None else parse_softmax(data, source=source),
                num_words=num_words,
                tokenizer=TokenizerConfig(name="whitespace"),
                training={ORIGINAL_OPTIONS: copy.deepcopy(dict(data))},
                initialize=False,
            )
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(f"{source}: {error}") from error


def _check_vocab(vocab: WordVocab, path: object, num_rows: int | None, what: str) -> None:
    if num_rows is not None and len(vocab) != num_rows:
        raise FormatError(
            f"{path}: {len(vocab)} words, but {what} has {num_rows} rows, one per line of the "
            "vocabulary: the files belong to different models."
        )


def _check_no_surplus(file: ArraySource, config: BiLMConfig) -> None:
    """Refuse biLM datasets that the options do not describe; log other datasets."""
    known = {name for dataset in bilm_layout(config) for name in dataset.names} | {*SOFTMAX_NAMES}
    others = {name: shape for name, shape in file.shapes().items() if name not in known}
    for name, shape in others.items():
        if name.startswith(_BILM_PREFIXES):
            raise FormatError(
                f"{file.path}: dataset `{name}` of shape {shape} has no place in the model "
                "that the options describe; options and weights belong to different models."
            )
    if others:
        message = "%s: passed over %d datasets that are not part of a biLM, such as %s"
        logger.info(message, file.path, len(others), min(others))


def _matrix_shape(file: ArraySource, name: str, expected: str) -> tuple[int, int]:
    """Return the shape of a matrix whose size is not in the options."""
    stored, where = file.dataset(name), f"{file.path}: dataset `{name}`"
    if stored is None:
        raise FormatError(f"{where} is missing; expected shape {expected}.")
    if stored.shape is None or len(stored.shape) != 2:
        raise FormatError(f"{where} has shape {stored.shape}, expected {expected}.")
    return stored.shape


def _read_tensors(datasets: Sequence[Dataset], file: ArraySource) -> dict[str, Tensor]:
    """Read parameters by name, once every dataset is known to be there in its shape."""
    found = [_find(file, dataset) for dataset in datasets]
    num_values = sum(math.prod(dataset.shape) for dataset in datasets)
    check_growth(file.path, 4 * num_values, file.num_bytes)
    return {
        name: torch.from_numpy(np.array(array, order="C"))
        for dataset, (stored_name, stored) in zip(datasets, found, strict=True)
        for name, array in dataset.read(_read_array(file, stored_name, stored)).items()
    }


def _find(file: ArraySource, dataset: Dataset) -> tuple[str, StoredArray]:
    """Return name and dataset, after checking it against the options."""
    shape = dataset.shape
    found = ((name, one) for name in dataset.names if (one := file.dataset(name)) is not None)
    name, stored = next(found, (dataset.name, None))
    where = f"{file.path}: dataset `{name}`"
    if stored is None:
        hint = ""
        if "rnn" in file or (name.startswith("RNN_1") and "RNN_1" not in file):
            hint = " It looks like a unidirectional model; elmokit reads bidirectional ones only."
        raise FormatError(f"{where} is missing; expected shape {shape}.{hint}")
    if stored.shape != shape:
        raise FormatError(f"{where} has shape {stored.shape}, expected {shape} by the options.")
    if stored.dtype.kind != "f":
        raise FormatError(f"{where} of shape {shape} holds {stored.dtype}, expected float32.")
    return name, stored


def _read_array(file: ArraySource, name: str, stored: StoredArray) -> np.ndarray:
    """Read one dataset as float32."""
    if stored.dtype != np.float32:
        logger.warning("%s: `%s` is %s, read as float32.", file.path, name, stored.dtype)
    array = file.read(stored).astype(np.float32, copy=False)
    check_finite(torch.from_numpy(array), name, file.path)
    return array


# --- writing


def _write_hdf5(
    path: Path, layout: list[Dataset], arrays: Arrays, metadata: Mapping[str, Any]
) -> None:
    reserve(path, sum(4 * math.prod(dataset.shape) for dataset in layout))
    kind: FileKind = "model weights"
    with h5py.File(path, "w", locking=False) as file:
        file.attrs[METADATA_KEY] = json.dumps({
            "kind": kind, "elmokit_version": __version__, "exported_from": metadata,
        })  # fmt: skip
        for dataset in layout:
            array = np.ascontiguousarray(dataset.write(arrays))
            assert array.shape == dataset.shape
            file.create_dataset(dataset.name, data=array)
