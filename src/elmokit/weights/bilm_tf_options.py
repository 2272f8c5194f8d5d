"""The original's ``options.json`` ⇄ our configuration."""

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.errors import FormatError
from elmokit.files.bounded import MAX_SETTINGS_BYTES, read_bounded
from elmokit.files.json_files import parse_json
from elmokit.text.char_vocab import NUM_RAW_CHARS, CharVocabConfig
from elmokit.weights.model_dir import PretrainedBiLM

MatrixShape = Callable[[str, str], tuple[int, int]]
"""(dataset, expected shape in words) -> its shape in the weights."""

DEFAULT_DROPOUT = 0.1
DEFAULT_NUM_SAMPLES = 8192
DEFAULT_MAX_CHARACTERS = 50
ORIGINAL_OPTIONS = "original_options"
"""Key of the training metadata that keeps the options as they were read."""


def read_options(path: Path) -> dict[str, Any]:
    """Read the file; `parse_options` checks its contents."""
    advice = "It must hold a JSON object with the keys `lstm` and `char_cnn`."
    return parse_json(read_bounded(path, MAX_SETTINGS_BYTES), source=path, advice=advice)


def parse_options(
    data: Mapping[str, Any], *, source: Path, matrix_shape: MatrixShape
) -> BiLMConfig:
    """Turn options into our configuration; missing sizes come from the weights.

    ``n_characters`` is ignored: it is 261 in training files and 262 in inference files, but the
    weights always have 261 rows. Raises `FormatError` for a missing or impossible option, or a
    unidirectional model.
    """
    options = _Options(data, source)
    if data.get("bidirectional") is False:
        raise FormatError(
            f"{source}: `bidirectional` is false: a unidirectional model. elmokit reads "
            "bidirectional ones only."
        )
    lstm, char_cnn = options.table("lstm"), options.table("char_cnn")
    if lstm is None:
        raise options.error("lstm", "an object with `dim` and `projection_dim`")
    max_characters = DEFAULT_MAX_CHARACTERS
    if char_cnn is not None:
        max_characters = char_cnn.integer("max_characters_per_token", default=max_characters)
    dropout = options.number("dropout")
    try:
        return BiLMConfig(
            char_vocab=CharVocabConfig(
                max_characters=max_characters, normalization="none", truncation="byte"
            ),
            char_cnn=None if char_cnn is None else _char_cnn(char_cnn, matrix_shape),
            num_words=matrix_shape(*first_dataset(data))[0] if char_cnn is None else None,
            lstm=LSTMConfig(
                num_layers=lstm.integer("n_layers", default=1),
                cell_dim=lstm.integer("dim"),
                projection_dim=lstm.integer("projection_dim"),
                cell_clip=lstm.number("cell_clip"),
                projection_clip=lstm.number("proj_clip"),
                skip_connections=bool(lstm.data.get("use_skip_connections", False)),
            ),
            dropout=DEFAULT_DROPOUT if dropout is None else dropout,
        )
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(f"{source}: {error}") from error


def parse_softmax(data: Mapping[str, Any]) -> SoftmaxConfig:
    """Return the output layer of training options; the original samples by default."""
    samples = data.get("n_negative_samples_batch")
    if not isinstance(samples, int) or samples < 1:
        samples = DEFAULT_NUM_SAMPLES
    return SoftmaxConfig(
        kind="full" if data.get("sample_softmax") is False else "sampled", num_samples=samples
    )


def first_dataset(data: Mapping[str, Any]) -> tuple[str, str]:
    """Return name and expected shape of the first dataset, for messages."""
    table = data.get("char_cnn")
    if isinstance(table, Mapping):
        embedding = table.get("embedding")
        dim = embedding.get("dim", "d") if isinstance(embedding, Mapping) else "d"
        return "char_embed", f"({NUM_RAW_CHARS}, {dim})"
    lstm = data.get("lstm")
    dim = lstm.get("projection_dim", "P") if isinstance(lstm, Mapping) else "P"
    return "embedding", f"(V, {dim})"


def options_of(model: PretrainedBiLM) -> dict[str, Any]:
    """Return the options of a model: as they were read if they still hold, else fresh ones."""
    original = copy.deepcopy(dict(model.training_metadata.get(ORIGINAL_OPTIONS) or {}))
    fresh = _fresh_options(model)
    result = original
    if not original or _comparable(original) != _comparable(fresh):
        result = {key: value for key, value in original.items() if key not in ("lstm", "char_cnn")}
        result |= fresh
    if model.softmax is not None and model.softmax_config is not None:
        if "n_tokens_vocab" in result or not original:
            result["n_tokens_vocab"] = model.softmax.num_words
        if parse_softmax(result) != model.softmax_config:
            result["sample_softmax"] = model.softmax_config.kind == "sampled"
            result["n_negative_samples_batch"] = model.softmax_config.num_samples
    return result


class _Options:
    """Checked access to a table; `FormatError` with the dotted key for missing or wrong values."""

    def __init__(self, data: Mapping[str, Any], source: Path, prefix: str = "") -> None:
        self.data, self.source, self.prefix = data, source, prefix

    def error(self, key: str, expected: str) -> FormatError:
        value = self.data.get(key)
        given = "is missing" if value is None else f"is {value!r}"
        return FormatError(f"{self.source}: `{self.prefix}{key}` {given}; expected {expected}.")

    def table(self, key: str) -> "_Options | None":
        value = self.data.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise self.error(key, "an object")
        return None if value is None else _Options(value, self.source, f"{self.prefix}{key}.")

    def integer(self, key: str, *, default: int | None = None) -> int:
        value = self.data.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(key, "a whole number")
        return value

    def number(self, key: str) -> float | None:
        value = self.data.get(key)
        if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
            raise self.error(key, "a number, or null for none")
        return None if value is None else float(value)


def _char_cnn(options: _Options, matrix_shape: MatrixShape) -> CharCNNConfig:
    embedding = options.table("embedding")
    if embedding is not None and "dim" in embedding.data:
        embedding_dim = embedding.integer("dim")
    else:
        embedding_dim = matrix_shape("char_embed", f"({NUM_RAW_CHARS}, d)")[1]
    activation = options.data.get("activation")
    if activation not in ("relu", "tanh"):
        raise options.error("activation", "'relu' or 'tanh'")
    return CharCNNConfig(
        embedding_dim=embedding_dim,
        filters=_filters(options),
        activation=activation,
        num_highway=options.integer("n_highway", default=0),
    )


def _filters(options: _Options) -> tuple[tuple[int, int], ...]:
    pairs = options.data.get("filters")
    if not isinstance(pairs, list) or any(
        not isinstance(pair, list)
        or len(pair) != 2
        or any(not isinstance(number, int) for number in pair)
        for pair in pairs
    ):
        raise options.error("filters", "a list of [width, count]")
    return tuple((width, count) for width, count in pairs)


def _fresh_options(model: PretrainedBiLM) -> dict[str, Any]:
    config = model.config
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


def _comparable(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that shape the model, with defaults filled in."""
    lstm, char_cnn = options.get("lstm") or {}, options.get("char_cnn") or {}
    shape = {key: lstm.get(key) for key in ("projection_dim", "dim", "cell_clip", "proj_clip")}
    shape["n_layers"] = lstm.get("n_layers") or 1
    shape["use_skip_connections"] = bool(lstm.get("use_skip_connections", False))
    shape["dropout"] = DEFAULT_DROPOUT if options.get("dropout") is None else options["dropout"]
    if char_cnn:
        shape["filters"] = char_cnn.get("filters")
        shape["activation"] = char_cnn.get("activation")
        shape["n_highway"] = char_cnn.get("n_highway") or 0
        shape["max_characters"] = char_cnn.get("max_characters_per_token") or DEFAULT_MAX_CHARACTERS
    return shape
