"""The original's ``options.json`` ⇄ our configuration; options of files that have none."""

import copy
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from elmokit.bilm.config import BiLMConfig, CharCNNConfig, SoftmaxConfig
from elmokit.bilm.lstm_config import LSTMConfig
from elmokit.errors import FormatError
from elmokit.files.json_files import parse_json
from elmokit.files.lines import MAX_SETTINGS_BYTES, read_whole
from elmokit.text.char_vocab import DEFAULT_MAX_CHARACTERS, NUM_RAW_CHARS, CharVocabConfig
from elmokit.text.lexicon import LexiconConfig
from elmokit.weights.stored_bilm import LoadedBiLM

Shapes = Mapping[str, tuple[int, ...]]
"""Shapes of the weights by the names of the original's HDF5 files."""

DEFAULT_DROPOUT = 0.1
DEFAULT_NUM_SAMPLES = 8192
RELEASED_CLIP = 3.0
RELEASED_ASSUMED = (
    f"the activation (ReLU), both clips ({RELEASED_CLIP:g}) and the longest word "
    f"({DEFAULT_MAX_CHARACTERS}) are those of all released "
    "models: the files do not state them. If they were others, give the options file with --options"
)
"""What the shapes of arrays do not tell."""
ORIGINAL_OPTIONS = "original_options"
"""Key of the training metadata that keeps the options as they were read."""
_STORED = f"config.json, training.{ORIGINAL_OPTIONS}"
_ADVICE = "Fetch the original options again."


def read_options(path: Path) -> dict[str, Any]:
    advice = "It must hold a JSON object with the keys `lstm` and `char_cnn`."
    return parse_json(read_whole(path, MAX_SETTINGS_BYTES), source=path, advice=advice)


def parse_options(data: Mapping[str, Any], *, source: object, shapes: Shapes) -> BiLMConfig:
    """Turn options into our configuration; missing sizes come from the shapes of the weights.

    ``shapes`` has the matrix of characters or of words. ``n_characters`` is ignored: it is 261 in
    training files and 262 in inference files, but the weights always have 261 rows.
    """
    with _named(source):
        data = _stated(data)
        if not _flag(data, "bidirectional", default=True):
            raise ValueError(
                "`bidirectional` is false: a unidirectional model; bidirectional ones are read"
            )
        lstm, cnn = _stated(data["lstm"]), data.get("char_cnn")
        num_rows, table_dim = shapes["embedding" if cnn is None else "char_embed"]
        cnn_config = length = None
        if cnn is not None:
            cnn = _stated(cnn)
            length = cnn.get("max_characters_per_token")
            cnn_config = CharCNNConfig(
                embedding_dim=_stated(cnn.get("embedding", {})).get("dim", table_dim),
                filters=tuple(map(tuple, cnn["filters"])),
                activation=cnn["activation"],
                num_highway=cnn.get("n_highway", 0),
            )
        return BiLMConfig(
            char_vocab=_char_vocab(length),
            char_cnn=cnn_config,
            num_words=num_rows if cnn is None else None,
            lstm=LSTMConfig(
                num_layers=lstm.get("n_layers", 1),
                cell_dim=lstm["dim"],
                projection_dim=lstm["projection_dim"],
                cell_clip=lstm.get("cell_clip"),
                projection_clip=lstm.get("proj_clip"),
                skip_connections=_flag(lstm, "use_skip_connections", default=False),
            ),
            dropout=data.get("dropout", DEFAULT_DROPOUT),
        )


def parse_softmax(data: Mapping[str, Any], *, source: object) -> SoftmaxConfig:
    """Return the output layer of training options; the original samples by default."""
    with _named(source):
        data = _stated(data)
        return SoftmaxConfig(
            kind="sampled" if _flag(data, "sample_softmax", default=True) else "full",
            num_samples=data.get("n_negative_samples_batch", DEFAULT_NUM_SAMPLES),
        )


def _flag(table: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = table.get(name, default)
    if not isinstance(value, bool):  # a text such as "false" would count as true
        raise ValueError(f"`{name}` must be true or false, got {value!r}")
    return value


def _stated(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table without nulls, which stand for what is not stated."""
    return {key: value for key, value in table.items() if value is not None}


@contextmanager
def _named(source: object) -> Iterator[None]:
    """Name the file of options that are missing or cannot be."""
    try:
        yield
    except KeyError as error:
        raise FormatError(f"{source}: the option {error} is missing. {_ADVICE}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise FormatError(f"{source}: {error}. {_ADVICE}") from error


def options_of(model: LoadedBiLM) -> dict[str, Any]:
    """Return the options of a model: as they were read if they still hold, else fresh ones."""
    original = copy.deepcopy(model.training_metadata.get(ORIGINAL_OPTIONS) or {})
    result = original
    if not original or not _describes(original, model.config):
        result = {key: value for key, value in original.items() if key not in ("lstm", "char_cnn")}
        result |= _fresh_options(model.config)
    if model.num_target_words is not None and model.softmax_config is not None:
        if "n_tokens_vocab" in result or not original:
            result["n_tokens_vocab"] = model.num_target_words
        if parse_softmax(result, source=_STORED) != model.softmax_config:
            result["sample_softmax"] = model.softmax_config.kind == "sampled"
            result["n_negative_samples_batch"] = model.softmax_config.num_samples
    return result


def released_options(shapes: Shapes, *, source: object) -> dict[str, Any]:
    """Return options of a character model: sizes by shape, the rest as in all released models."""
    return _fresh_options(config_of_shapes(shapes, source=source))


def config_of_shapes(
    shapes: Shapes,
    *,
    source: object,
    lexicon: LexiconConfig | None = None,
    max_characters: int = DEFAULT_MAX_CHARACTERS,
    activation: Literal["relu", "tanh"] = "relu",
    cell_clip: float | None = RELEASED_CLIP,
    projection_clip: float | None = RELEASED_CLIP,
) -> BiLMConfig:
    """Return the configuration of a character model: sizes by shape, the rest as it is given."""
    cells = [name for name in shapes if name.startswith("RNN_0/") and name.endswith("/W_0")]
    try:
        (_, embedding_dim), (rows, columns) = shapes["char_embed"], shapes[min(cells)]
        kernels = [shapes[f"CNN/W_cnn_{i}"] for i in _numbered(shapes, "CNN/W_cnn_{}")]
        return BiLMConfig(
            char_vocab=CharVocabConfig(
                max_characters=max_characters,
                normalization="none",
                truncation="byte" if lexicon is None else "character",
            ),
            char_cnn=CharCNNConfig(
                embedding_dim=embedding_dim,
                filters=tuple((width, count) for _, width, _, count in kernels),
                activation=activation,
                num_highway=len(_numbered(shapes, "CNN_high_{}/W_carry")),
            ),
            lexicon=lexicon,
            lstm=LSTMConfig(
                num_layers=len(cells),
                cell_dim=columns // 4,
                projection_dim=rows // 2,
                cell_clip=cell_clip,
                projection_clip=projection_clip,
            ),
        )
    except (KeyError, ValueError) as error:
        raise FormatError(
            f"{source}: no network follows from its arrays (`char_embed`, `CNN/W_cnn_0` …, "
            f"`RNN_0/…/W_0`): {error}. Give the options file with --options."
        ) from error


def _numbered(shapes: Shapes, pattern: str) -> range:
    """Return 0, 1, 2, … as far as there are names of a pattern with ``{}`` for the number."""
    return range(next(n for n in itertools.count() if pattern.format(n) not in shapes))


def _char_vocab(max_characters: int | None) -> CharVocabConfig:
    length = DEFAULT_MAX_CHARACTERS if max_characters is None else max_characters
    return CharVocabConfig(max_characters=length, normalization="none", truncation="byte")


def _describes(options: Mapping[str, Any], config: BiLMConfig) -> bool:
    """Tell whether options still describe a model, apart from what they have no place for."""
    shapes = {"embedding": (config.num_words or 0, 0)}
    max_characters = None
    if config.char_cnn is not None:
        shapes["char_embed"] = (NUM_RAW_CHARS, config.char_cnn.embedding_dim)
        max_characters = config.char_vocab.max_characters
    described = parse_options(options, source=_STORED, shapes=shapes)
    return described == replace(config, char_vocab=_char_vocab(max_characters))


def _fresh_options(config: BiLMConfig) -> dict[str, Any]:
    options: dict[str, Any] = {
        "lstm": {
            "use_skip_connections": config.lstm.skip_connections,
            "projection_dim": config.lstm.projection_dim,
            "cell_clip": config.lstm.cell_clip,
            "proj_clip": config.lstm.projection_clip,
            "dim": config.lstm.cell_dim,
            "n_layers": config.lstm.num_layers,
        }
    }
    if config.char_cnn is not None:
        options["char_cnn"] = {
            "activation": config.char_cnn.activation,
            "filters": [list(pair) for pair in config.char_cnn.filters],
            "n_highway": config.char_cnn.num_highway,
            "embedding": {"dim": config.char_cnn.embedding_dim},
            "n_characters": NUM_RAW_CHARS + 1,
            "max_characters_per_token": config.char_vocab.max_characters,
        }
    options["dropout"] = config.dropout
    return options
