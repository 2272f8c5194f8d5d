"""The original's ``options.json`` ⇄ our configuration."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.config import known_part, parse_record
from elmokit.errors import FormatError
from elmokit.files.bounded import MAX_SETTINGS_BYTES
from elmokit.files.json_files import parse_json
from elmokit.files.lines import read_whole
from elmokit.text.char_vocab import DEFAULT_MAX_CHARACTERS, NUM_RAW_CHARS, CharVocabConfig
from elmokit.weights.model_dir import PretrainedBiLM

MatrixShape = Callable[[str, str], tuple[int, int]]
"""(dataset, expected shape in words) -> its shape in the weights."""

DEFAULT_DROPOUT = 0.1
DEFAULT_NUM_SAMPLES = 8192
ORIGINAL_OPTIONS = "original_options"
"""Key of the training metadata that keeps the options as they were read."""
_STORED = f"config.json, training.{ORIGINAL_OPTIONS}"


def read_options(path: Path) -> dict[str, Any]:
    """Read the file; `parse_options` checks its contents.

    Raises:
        FormatError: for invalid JSON.
    """
    advice = "It must hold a JSON object with the keys `lstm` and `char_cnn`."
    return parse_json(read_whole(path, MAX_SETTINGS_BYTES), source=path, advice=advice)


def parse_options(
    data: Mapping[str, Any], *, source: object, matrix_shape: MatrixShape
) -> BiLMConfig:
    """Turn options into our configuration; missing sizes come from the weights.

    ``n_characters`` is ignored: it is 261 in training files and 262 in inference files, but the
    weights always have 261 rows. Raises `FormatError` for a missing or impossible option, or a
    unidirectional model.
    """
    options = _typed(data, source)
    if options.bidirectional is False:
        raise FormatError(
            f"{source}: `bidirectional` is false: a unidirectional model. elmokit reads "
            "bidirectional ones only."
        )
    lstm, cnn = options.lstm, options.char_cnn
    try:
        return BiLMConfig(
            char_vocab=_char_vocab(None if cnn is None else cnn.max_characters_per_token),
            char_cnn=None if cnn is None else _char_cnn(cnn, matrix_shape),
            num_words=matrix_shape(*first_dataset(data))[0] if cnn is None else None,
            lstm=LSTMConfig(
                num_layers=1 if lstm.n_layers is None else lstm.n_layers,
                cell_dim=lstm.dim,
                projection_dim=lstm.projection_dim,
                cell_clip=lstm.cell_clip,
                projection_clip=lstm.proj_clip,
                skip_connections=bool(lstm.use_skip_connections),
            ),
            dropout=DEFAULT_DROPOUT if options.dropout is None else options.dropout,
        )
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(f"{source}: {error}") from error


def parse_softmax(data: Mapping[str, Any], *, source: object) -> SoftmaxConfig:
    """Return the output layer of training options; the original samples by default."""
    options = _typed(data, source)
    samples = options.n_negative_samples_batch
    try:
        return SoftmaxConfig(
            kind="full" if options.sample_softmax is False else "sampled",
            num_samples=DEFAULT_NUM_SAMPLES if samples is None else samples,
        )
    except ValueError as error:
        raise FormatError(f"{source}: `n_negative_samples_batch`: {error}") from error


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
    original = copy.deepcopy(model.training_metadata.get(ORIGINAL_OPTIONS) or {})
    result = original
    if not original or not _describes(original, model.config):
        result = {key: value for key, value in original.items() if key not in ("lstm", "char_cnn")}
        result |= _fresh_options(model)
    if model.softmax is not None and model.softmax_config is not None:
        if "n_tokens_vocab" in result or not original:
            result["n_tokens_vocab"] = model.softmax.num_words
        if parse_softmax(result, source=_STORED) != model.softmax_config:
            result["sample_softmax"] = model.softmax_config.kind == "sampled"
            result["n_negative_samples_batch"] = model.softmax_config.num_samples
    return result


@dataclass(frozen=True, kw_only=True)
class _LSTMOptions:
    dim: int
    projection_dim: int
    n_layers: int | None = None
    cell_clip: float | None = None
    proj_clip: float | None = None
    use_skip_connections: bool | None = None


@dataclass(frozen=True, kw_only=True)
class _EmbeddingOptions:
    dim: int | None = None


@dataclass(frozen=True, kw_only=True)
class _CharCNNOptions:
    activation: Literal["relu", "tanh"]
    filters: tuple[tuple[int, int], ...]
    n_highway: int | None = None
    embedding: _EmbeddingOptions | None = None
    max_characters_per_token: int | None = None


@dataclass(frozen=True, kw_only=True)
class _Options:
    """The options that matter here, under the original's names; None means absent."""

    lstm: _LSTMOptions
    char_cnn: _CharCNNOptions | None = None
    dropout: float | None = None
    bidirectional: bool | None = None
    sample_softmax: bool | None = None
    n_negative_samples_batch: int | None = None


def _typed(data: Mapping[str, Any], source: object) -> _Options:
    known = known_part(_Options, data)
    return parse_record(_Options, known, source=source, advice="Fetch the original options again.")


def _char_vocab(max_characters: int | None) -> CharVocabConfig:
    length = DEFAULT_MAX_CHARACTERS if max_characters is None else max_characters
    return CharVocabConfig(max_characters=length, normalization="none", truncation="byte")


def _char_cnn(options: _CharCNNOptions, matrix_shape: MatrixShape) -> CharCNNConfig:
    dim = None if options.embedding is None else options.embedding.dim
    if dim is None:
        dim = matrix_shape("char_embed", f"({NUM_RAW_CHARS}, d)")[1]
    return CharCNNConfig(
        embedding_dim=dim,
        filters=options.filters,
        activation=options.activation,
        num_highway=options.n_highway or 0,
    )


def _describes(options: Mapping[str, Any], config: BiLMConfig) -> bool:
    """Tell whether options still describe a model, apart from what they have no place for."""

    def matrix_shape(name: str, expected: str) -> tuple[int, int]:
        rows = config.num_words if config.char_cnn is None else NUM_RAW_CHARS
        width = 0 if config.char_cnn is None else config.char_cnn.embedding_dim
        return rows or 0, width

    found = parse_options(options, source=_STORED, matrix_shape=matrix_shape)
    length = None if config.char_cnn is None else config.char_vocab.max_characters
    return found == replace(config, char_vocab=_char_vocab(length))


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
