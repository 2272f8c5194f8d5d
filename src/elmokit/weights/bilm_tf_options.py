"""The original's ``options.json`` ⇄ our configuration; options of files that have none."""

import copy
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from elmokit.bilm.config import BiLMConfig, CharCNNConfig, SoftmaxConfig
from elmokit.bilm.lstm_config import LSTMConfig
from elmokit.errors import FormatError
from elmokit.files.json_files import parse_json
from elmokit.files.lines import MAX_SETTINGS_BYTES, read_whole
from elmokit.text.char_vocab import DEFAULT_MAX_CHARACTERS, NUM_RAW_CHARS, CharVocabConfig
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
_LSTM: dict[str, tuple[str, Any]] = {
    "use_skip_connections": ("skip_connections", False),
    "projection_dim": ("projection_dim", ...),
    "cell_clip": ("cell_clip", None),
    "proj_clip": ("projection_clip", None),
    "dim": ("cell_dim", ...),
    "n_layers": ("num_layers", 1),
}
"""Our name of each option, and what one that is not stated means; ``...``: it must be."""


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
        _flag(lstm, "use_skip_connections", default=False)
        fields = {
            name: lstm[option] if default is ... else lstm.get(option, default)
            for option, (name, default) in _LSTM.items()
        }
        cnn_config = num_words = None
        max_characters = DEFAULT_MAX_CHARACTERS
        if cnn is None:
            num_words = shapes["embedding"][0]
        else:
            cnn = _stated(cnn)
            table_dim = shapes["char_embed"][1]
            max_characters = cnn.get("max_characters_per_token", DEFAULT_MAX_CHARACTERS)
            cnn_config = CharCNNConfig(
                embedding_dim=_stated(cnn.get("embedding", {})).get("dim", table_dim),
                filters=tuple(map(tuple, cnn["filters"])),
                activation=cnn["activation"],
                num_highway=cnn.get("n_highway", 0),
            )
        return BiLMConfig(
            char_vocab=_char_vocab(max_characters), char_cnn=cnn_config, num_words=num_words,
            lstm=LSTMConfig(**fields), dropout=data.get("dropout", DEFAULT_DROPOUT),
        )  # fmt: skip


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


def _char_vocab(max_characters: int) -> CharVocabConfig:
    return CharVocabConfig(max_characters=max_characters, normalization="none", truncation="byte")


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


def _describes(options: Mapping[str, Any], config: BiLMConfig) -> bool:
    """Tell whether options still describe a model, apart from what they have no place for."""
    shapes = {"embedding": (config.num_words or 0, 0)}
    max_characters = DEFAULT_MAX_CHARACTERS
    if config.char_cnn is not None:
        shapes["char_embed"] = (NUM_RAW_CHARS, config.char_cnn.embedding_dim)
        max_characters = config.char_vocab.max_characters
    described = parse_options(options, source=_STORED, shapes=shapes)
    return described == replace(config, char_vocab=_char_vocab(max_characters))


def _fresh_options(config: BiLMConfig) -> dict[str, Any]:
    lstm = {option: getattr(config.lstm, name) for option, (name, _) in _LSTM.items()}
    options: dict[str, Any] = {"lstm": lstm}
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


def released_options(shapes: Shapes, *, source: object) -> dict[str, Any]:
    """Return options of a character model: sizes by shape, the rest as in all released models."""

    def numbered(pattern: str) -> list[tuple[int, ...]]:
        names = map(pattern.format, itertools.count())
        return [shapes[name] for name in itertools.takewhile(shapes.__contains__, names)]

    cells = [name for name in shapes if name.startswith("RNN_0/") and name.endswith("/W_0")]
    try:
        (_, embedding_dim), (rows, columns) = shapes["char_embed"], shapes[min(cells)]
        cnn = CharCNNConfig(
            embedding_dim=embedding_dim, num_highway=len(numbered("CNN_high_{}/W_carry")),
            filters=tuple((width, count) for _, width, _, count in numbered("CNN/W_cnn_{}")),
        )  # fmt: skip
        lstm = LSTMConfig(num_layers=len(cells), cell_dim=columns // 4, projection_dim=rows // 2)
        return _fresh_options(BiLMConfig(char_cnn=cnn, lstm=lstm))
    except (KeyError, ValueError) as error:
        raise FormatError(
            f"{source}: no network follows from its arrays (`char_embed`, `CNN/W_cnn_0` …, "
            f"`RNN_0/…/W_0`): {error}. Give the options file with --options."
        ) from error
