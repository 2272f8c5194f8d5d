"""Read and write the original implementation's files: ``options.json`` and HDF5 weights.

`bilm_tf_options` explains the options, `bilm_tf_layout` the datasets. Biases are kept as stored
(the forget gate's 1 is added at run time), so that reading and writing gives the same bits.
"""

import copy
import json
import logging
import math
import os
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmokit.bilm.config import BiLMConfig, parameter_shapes
from elmokit.errors import FormatError, InputError
from elmokit.files.atomic import StrPath, atomic_file, replaced_by, reserve
from elmokit.files.hdf5 import open_hdf5
from elmokit.files.json_files import json_bytes
from elmokit.files.lines import check_growth
from elmokit.text.lexicon import Lexicon
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.version import __version__
from elmokit.weights.arrays import check_finite
from elmokit.weights.bilm_tf_layout import (
    SOFTMAX_NAMES,
    Arrays,
    ArraySource,
    Dataset,
    bilm_layout,
    softmax_layout,
)
from elmokit.weights.bilm_tf_options import (
    ORIGINAL_OPTIONS,
    options_of,
    parse_options,
    parse_softmax,
    read_options,
)
from elmokit.weights.card import METADATA_KEY, ResultKind
from elmokit.weights.stored_bilm import LoadedBiLM, StoredBiLM, char_vocab_of, softmax_size

logger = logging.getLogger(__name__)

_BILM_PREFIXES = ("char_embed", "embedding", "word_embed", "CNN", "RNN", "rnn")
_EXPECTED = "The arrays of a biLM (`char_embed` or `embedding`, `RNN_0` …) were expected."


def read_original(
    options: StrPath,
    weights: StrPath,
    *,
    vocab: StrPath | None = None,
    softmax: StrPath | None = None,
) -> StoredBiLM:
    """Read a model as `elmokit.read_bilm_tf` does, as arrays."""
    source = Path(options)
    data = read_options(source)
    with ExitStack() as files:
        arrays = files.enter_context(open_hdf5(Path(weights), expected=_EXPECTED))
        output = None
        if softmax is not None:
            output = files.enter_context(open_hdf5(Path(softmax), expected=_EXPECTED))
        return build_bilm(data, arrays, source=source, vocab=vocab, output=output)


def build_bilm(
    options: Mapping[str, Any],
    arrays: ArraySource,
    *,
    source: Path,
    config: BiLMConfig | None = None,
    lexicon: Lexicon | None = None,
    vocab: StrPath | None = None,
    output: ArraySource | None = None,
) -> StoredBiLM:
    """Return the model of options and of arrays in the original's layout.

    ``source`` is the file of the options, which are only kept in the model's metadata if ``config``
    is given; ``output`` holds the softmax, if it is not in ``arrays``.
    """
    word_vocab = None if vocab is None else WordVocab.read(vocab)
    shapes = arrays.shapes()
    if config is None:
        table = "embedding" if options.get("char_cnn") is None else "char_embed"
        if len(shapes.get(table, ())) != 2:
            raise FormatError(
                f"{arrays.path}: dataset `{table}` has the shape {shapes.get(table, '(missing)')}; "
                f"{source} describes a model with a matrix of this name (`char_cnn`, or none)."
            )
        config = parse_options(options, source=source, shapes=shapes)
    if output is None and any(name in shapes for name in SOFTMAX_NAMES):
        output = arrays
    softmax_config = num_words = None
    if output is not None:
        softmax_config = parse_softmax(options, source=source)
        num_words = (output.shapes().get(SOFTMAX_NAMES[0]) or (0,))[0]
    try:
        char_vocab = char_vocab_of(config, lexicon)
        num_words = softmax_size(config, softmax_config, word_vocab, num_words)
    except ValueError as error:
        raise FormatError(f"{source}: {error}") from error
    parameters = _read_arrays([*bilm_layout(config)], arrays, prefixes=_BILM_PREFIXES)
    if output is not None and num_words is not None:
        parameters |= _read_arrays([*softmax_layout(config, num_words)], output)
    ordered = parameter_shapes(config, softmax_config, num_words)
    return StoredBiLM(
        config, {name: parameters[name] for name in ordered}, char_vocab=char_vocab,
        word_vocab=word_vocab, softmax_config=softmax_config, num_words=num_words,
        tokenizer=TokenizerConfig(name="whitespace"),
        training_metadata={ORIGINAL_OPTIONS: copy.deepcopy(dict(options))},
    )  # fmt: skip


def write_bilm_tf(
    model: LoadedBiLM,
    options: StrPath,
    weights: StrPath,
    *,
    softmax: StrPath | None = None,
    vocab: StrPath | None = None,
) -> None:
    """Write a model in the original format.

    Existing files are replaced once all new ones are written. If that fails in between, there are
    no options, without which the others are not read.

    A model that was read from this format gives the same datasets, bit for bit, and the same
    options. What the format cannot hold (normalization, tokenizer) is logged as a warning. The
    softmax goes into its own file ``softmax``, or into ``weights``, where other readers ignore it,
    as they do the metadata: an attribute with the hash, tokenizer and normalization of ``model``.
    (Read back, it has another hash if the format cannot hold its normalization.) The words go to
    ``vocab``, if given; without any, that file is removed.

    Raises:
        InputError: for an adaptive softmax or a lexicon, which the format cannot hold, if
            ``softmax`` is given for a model without one, and if two of the files are the same.
    """
    others = [Path(path) for path in (weights, softmax, vocab) if path is not None]
    if len({path.resolve() for path in (Path(options), *others)}) <= len(others):
        raise InputError(
            f"Files to write must differ, got {', '.join(map(str, (options, *others)))}."
        )
    num_words, softmax_config = model.num_target_words, model.softmax_config
    if model.config.lexicon is not None:
        raise InputError("The original format has no place for a `lexicon`.")
    if num_words is not None and softmax_config and softmax_config.kind == "adaptive":
        raise InputError("The original format has no place for an adaptive softmax.")
    if softmax is not None and num_words is None:
        raise InputError(f"`softmax` is {os.fspath(softmax)!r}, but the model has no softmax.")
    for loss in format_losses(model):
        logger.warning("%s: %s", os.fspath(weights), loss)
    arrays, metadata = model.arrays(), model.metadata()
    layout, output = list(bilm_layout(model.config)), []
    if num_words is not None:
        output = list(softmax_layout(model.config, num_words))
    old = [replaced_by(path) for path in (options, vocab) if path is not None]
    with ExitStack() as files:  # the first one replaces its file last
        text = json_bytes(options_of(model), indent=2)
        files.enter_context(atomic_file(options)).write_bytes(text)
        if softmax is None:
            layout += output
        else:
            _write_hdf5(files.enter_context(atomic_file(softmax)), output, arrays, metadata)
        _write_hdf5(files.enter_context(atomic_file(weights)), layout, arrays, metadata)
        if vocab is not None and model.word_vocab is not None:
            model.word_vocab.write(files.enter_context(atomic_file(vocab)))
        # without options readers find nothing: a kill from here on leaves no mixture to be read
        for path in old:
            path.unlink(missing_ok=True)


def format_losses(model: LoadedBiLM) -> list[str]:
    """List what the original format cannot hold of this model, a sentence each."""
    vocab, reads_characters = model.config.char_vocab, model.config.char_cnn is not None
    losses = {
        f"normalization={vocab.normalization!r}: readers must normalize the text first, or words "
        "in another form get other vectors.": (
            reads_characters and vocab.normalization != "none"
        ),
        f"truncation={vocab.truncation!r}: readers cut words of more than "
        f"{vocab.max_characters - 2} bytes anywhere, even inside a character.": (
            reads_characters and vocab.truncation != "byte"
        ),
        f"the tokenizer ({model.tokenizer.name!r}): readers split at white space, so tokenize the "
        "text beforehand.": model.tokenizer.name != "whitespace",
        "the warm-up text.": bool(model.warm_text),
        "the spellings of words outside the vocabulary.": model.spelling is not None,
    }  # fmt: skip
    return [f"the format has no place for {loss}" for loss, is_lost in losses.items() if is_lost]


# --- reading


def _read_arrays(
    layout: Collection[Dataset], arrays: ArraySource, *, prefixes: tuple[str, ...] = ()
) -> dict[str, np.ndarray]:
    """Read parameters by name, once every dataset is known to be there in its shape.

    Datasets with these prefixes that the layout does not have are refused.
    """
    shapes, path = arrays.shapes(), arrays.path
    stored: dict[str, Dataset] = {}
    for dataset in layout:
        is_alias = dataset.name not in shapes and dataset.alias
        name = dataset.alias if is_alias else dataset.name
        if shapes.get(name) != dataset.shape:
            problem = f"has shape {shapes[name]}" if name in shapes else "is missing"
            raise FormatError(
                f"{path}: dataset `{name}` {problem}; a biLM, of both directions, with these "
                f"options has one of shape {dataset.shape}."
            )
        stored[name] = dataset
    for name, shape in shapes.items():
        if name.startswith(prefixes) and name not in stored and name not in SOFTMAX_NAMES:
            raise FormatError(
                f"{path}: dataset `{name}` of shape {shape} has no place in the model that the "
                "options describe."
            )
    check_growth(path, sum(4 * math.prod(dataset.shape) for dataset in layout), arrays.num_bytes)
    parameters = {}
    for name, dataset in stored.items():
        place = arrays.dataset(name)
        if place is None or place.dtype.kind != "f":
            kind = "a group" if place is None else place.dtype
            raise FormatError(f"{path}: dataset `{name}` is {kind}, expected float32.")
        if place.dtype != np.float32:
            logger.warning("%s: `%s` is %s, read as float32.", path, name, place.dtype)
        values = arrays.read(place).astype(np.float32, copy=False)
        check_finite(values, name, path)
        for parameter, array in dataset.read(values).items():
            parameters[parameter] = np.array(array, order="C")
    return parameters


# --- writing


def _write_hdf5(
    path: Path, layout: list[Dataset], arrays: Arrays, metadata: Mapping[str, Any]
) -> None:
    reserve(path, sum(4 * math.prod(dataset.shape) for dataset in layout))
    kind: ResultKind = "model weights"
    with h5py.File(path, "w", locking=False) as file:
        file.attrs[METADATA_KEY] = json.dumps({
            "kind": kind, "elmokit_version": __version__, "exported_from": metadata,
        })  # fmt: skip
        for dataset in layout:
            array = np.ascontiguousarray(dataset.write(arrays))
            assert array.shape == dataset.shape
            file.create_dataset(dataset.name, data=array)
