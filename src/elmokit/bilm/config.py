"""What determines a biLM: its configuration, and the names and shapes of its parameters.

Nothing here computes, so that whoever reads or runs a model does not need PyTorch.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

from elmokit.bilm.lstm_config import FORGET_OFFSET as FORGET_OFFSET
from elmokit.bilm.lstm_config import MAX_DIM, MAX_LAYERS, Dim, LSTMConfig
from elmokit.errors import Bounds, CheckedFields, ConfigError
from elmokit.text import lexicon as lexicons
from elmokit.text.char_vocab import CHAR_PADDING, MAX_CHARACTERS, NUM_CHARS, CharVocabConfig
from elmokit.text.lexicon import LexiconConfig

MAX_WORDS = 2**31 - 2
MAX_DROPOUT = 0.999999
PADDING_ID = CHAR_PADDING + 1
"""The padding character in id tensors; its embedding is trained. Id 0 is a padded token."""

Direction = Literal["forward", "backward"]
Shape = tuple[int, ...]

LayerNorm = Literal["none", "token", "batch", "batch_with_boundaries"]
"""How layers are normalized before mixing, without gain or bias.

``token``: over the features of each position (the usual layer norm).
``batch``: one mean and variance per layer over all real tokens of the batch, as in bilm-tf.
``batch_with_boundaries``: the same with sentence boundaries, as in AllenNLP. The batch-wide norms
make a sentence's vectors depend on its batch; they exist for parity.
"""

NORM_EPSILON = 1e-12

LayerChoice = Literal["mix", "average", "top", "layer0"]
"""The layers of a mixture.

``mix``: all, with learned weights. ``average``: all, weighted equally. ``top``: the last one.
``layer0``: the token layer. The scale gamma is always learned.
"""


@dataclass(frozen=True, kw_only=True)
class CharCNNConfig(CheckedFields):
    """Shape of the character encoder. The defaults are those of the released models."""

    embedding_dim: Dim = 16
    """Width of one character's embedding."""
    filters: tuple[tuple[int, int], ...] = (
        (1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024),
    )  # fmt: skip
    """(width in characters, number of filters), in order of concatenation."""
    activation: Literal["relu", "tanh"] = "relu"
    """Applied after the maximum over positions."""
    num_highway: Annotated[int, Bounds(0, MAX_LAYERS)] = 2
    """Highway layers after the convolutions; 0 for none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        is_valid = 0 < len(self.filters) <= MAX_LAYERS and all(
            1 <= width <= MAX_CHARACTERS and count >= 1 for width, count in self.filters
        )
        if not is_valid or self.num_filters > MAX_DIM:
            raise ConfigError(
                f"`filters` must be pairs (width up to {MAX_CHARACTERS}, count), at most "
                f"{MAX_DIM:,} filters together, got {str(self.filters)[:200]}"
            )

    @property
    def num_filters(self) -> int:
        return sum(count for _, count in self.filters)


@dataclass(frozen=True, kw_only=True)
class SoftmaxConfig(CheckedFields):
    """The softmax that a model is trained with. Evaluation is always exact."""

    kind: Literal["full", "sampled", "adaptive"] = "sampled"
    """``sampled`` becomes ``full`` if the vocabulary is at most twice the sample."""
    num_samples: Annotated[int, Bounds(1, 2**31 - 2)] = 8192
    """K, negative words drawn for each direction and step."""
    cutoffs: tuple[int, ...] = ()
    """Adaptive: first classes of the rarer clusters; empty: at 1/20 and 1/4 of the vocabulary."""

    def __post_init__(self) -> None:
        super().__post_init__()
        is_increasing = list(self.cutoffs) == sorted(set(self.cutoffs))
        if len(self.cutoffs) > 100 or not is_increasing or min(self.cutoffs, default=1) < 1:
            raise ConfigError(
                "`cutoffs` must be at most 100 increasing numbers of classes from 1, got "
                f"{str(self.cutoffs)[:200]}"
            )


@dataclass(frozen=True, kw_only=True)
class BiLMConfig(CheckedFields):
    """Everything that determines a biLM's parameters and numbers; by default the original model."""

    char_vocab: CharVocabConfig = field(default_factory=CharVocabConfig)
    """Characters per token, normalization and truncation."""
    char_cnn: CharCNNConfig | None = field(default_factory=CharCNNConfig)
    """The character encoder; none for word-input models."""
    num_words: Annotated[int, Bounds(0, MAX_WORDS)] | None = None
    """V, for word-input models only. 0: pre-training sets it from the vocabulary."""
    lexicon: LexiconConfig | None = None
    """Characters and words by lists instead of bytes: imported models of ELMoForManyLangs."""
    lstm: LSTMConfig = field(default_factory=LSTMConfig)
    """The LSTM stacks."""
    dropout: Annotated[float, Bounds(0.0, MAX_DROPOUT)] = 0.1
    """Share of values dropped in training at each LSTM layer's input and at the top output."""

    def __post_init__(self) -> None:
        super().__post_init__()
        reads_words = self.num_words is not None
        if (self.char_cnn is None) != reads_words or (self.lexicon is not None and reads_words):
            raise ConfigError(
                "set either `char_cnn` (character input) or `num_words` (word input: char_cnn=none "
                "and num_words=0, which pre-training sets from the vocabulary)"
            )
        widest = 0 if self.char_cnn is None else max(width for width, _ in self.char_cnn.filters)
        if widest > self.char_vocab.max_characters:
            raise ConfigError(
                f"A filter of width {widest} is wider than max_characters="
                f"{self.char_vocab.max_characters}; use narrower filters or longer rows."
            )


def padding_id(lexicon: LexiconConfig | None) -> int:
    return PADDING_ID if lexicon is None else lexicons.PADDING


def has_sample(config: SoftmaxConfig, num_words: int) -> bool:
    """Return whether training samples words: not if the sample would be half the vocabulary."""
    return config.kind == "sampled" and 2 * config.num_samples < num_words


def cutoffs_of(config: SoftmaxConfig, num_words: int) -> tuple[int, ...]:
    return config.cutoffs or tuple(sorted({max(1, num_words // 20), max(2, num_words // 4)}))


def shrinkage(dim: int, num_clusters: int) -> float:
    """Return the factor between the dimensions of clusters; the last keeps at least one."""
    return min(4.0, dim ** (1 / num_clusters) * (1 - 1e-9))


def parameter_shapes(
    config: BiLMConfig, softmax: SoftmaxConfig | None = None, num_words: int | None = None
) -> dict[str, Shape]:
    """Return the names and shapes of all parameters, in the order of the modules."""
    shapes = dict(_token_encoder_shapes(config))
    lstm = config.lstm
    gates, dim = 4 * lstm.cell_dim, lstm.projection_dim
    for stack in ("forward_layers", "backward_layers"):
        for layer in range(lstm.num_layers):
            prefix = f"{stack}.{layer}"
            shapes[f"{prefix}.input_weight"] = (gates, dim)
            shapes[f"{prefix}.recurrent_weight"] = (gates, dim)
            shapes[f"{prefix}.bias"] = (gates,)
            if dim != lstm.cell_dim:
                shapes[f"{prefix}.projection_weight"] = (dim, lstm.cell_dim)
    if softmax is not None and num_words is not None:
        shapes |= _softmax_shapes(softmax, num_words, dim)
    return shapes


def _token_encoder_shapes(config: BiLMConfig) -> Iterator[tuple[str, Shape]]:
    dim, cnn, lexicon = config.lstm.projection_dim, config.char_cnn, config.lexicon
    if cnn is None:
        assert config.num_words is not None
        yield "token_encoder.embedding.weight", (config.num_words + 1, dim)
        return
    num_chars = NUM_CHARS if lexicon is None else lexicon.character_rows
    yield "token_encoder.char_embedding.weight", (num_chars, cnn.embedding_dim)
    if lexicon is not None:
        yield "token_encoder.word_embedding.weight", (lexicon.word_rows, lexicon.word_dim)
    for number, (width, count) in enumerate(cnn.filters):
        yield f"token_encoder.convolutions.{number}.weight", (count, cnn.embedding_dim, width)
        yield f"token_encoder.convolutions.{number}.bias", (count,)
    for number in range(cnn.num_highway):
        for name in ("carry", "transform"):
            prefix = f"token_encoder.highways.{number}.{name}"
            yield f"{prefix}.weight", (cnn.num_filters, cnn.num_filters)
            yield f"{prefix}.bias", (cnn.num_filters,)
    last_dim = cnn.num_filters + (0 if lexicon is None else lexicon.word_dim)
    if lexicon is not None or last_dim != dim:
        yield "token_encoder.projection.weight", (dim, last_dim)
        yield "token_encoder.projection.bias", (dim,)


def _softmax_shapes(config: SoftmaxConfig, num_words: int, dim: int) -> dict[str, Shape]:
    if config.kind != "adaptive":
        return {"softmax.weight": (num_words, dim), "softmax.bias": (num_words,)}
    ends = (*cutoffs_of(config, num_words), num_words)
    head, shrink = ends[0] + len(ends) - 1, shrinkage(dim, len(ends) - 1)
    shapes: dict[str, Shape] = {
        "softmax.clusters.head.weight": (head, dim), "softmax.clusters.head.bias": (head,),
    }  # fmt: skip
    for number, (start, end) in enumerate(itertools.pairwise(ends)):
        inner = int(dim // shrink ** (number + 1))
        shapes[f"softmax.clusters.tail.{number}.0.weight"] = (inner, dim)
        shapes[f"softmax.clusters.tail.{number}.1.weight"] = (end - start, inner)
    return shapes
