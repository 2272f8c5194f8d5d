"""The token layer: a character CNN, or a word embedding in word-input models."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.highway import Highway
from elmokit.bilm.lstmp import MAX_DIM, MAX_LAYERS
from elmokit.errors import ConfigError
from elmokit.field_checks import check_choices, check_ranges, is_number
from elmokit.text import lexicon as lexicons
from elmokit.text.char_vocab import CHAR_PADDING, MAX_CHARACTERS, NUM_CHARS
from elmokit.text.lexicon import LexiconConfig
from elmokit.wording import shown

PADDING_ID = CHAR_PADDING + 1
"""The padding character in id tensors; its embedding is trained. Id 0 is a padded token."""

GROUP_SIZE = 256  # tokens of similar length that are convolved together
ROW_BLOCK = 8
"""Tokens and sentences are padded to a multiple of this: smaller products round differently."""
ROW_BLOCKS = (ROW_BLOCK, 4 * ROW_BLOCK, GROUP_SIZE)
"""The number of tokens is rounded up to a multiple of the first that is at least 1/8 of it."""
COLUMN_BLOCK = 8  # the characters of a group are rounded up to a multiple of this


@dataclass(frozen=True, kw_only=True)
class CharCNNConfig:
    """Shape of the character encoder. The defaults are those of the released models."""

    embedding_dim: int = 16
    """Width of one character's embedding."""
    filters: tuple[tuple[int, int], ...] = (
        (1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024),
    )  # fmt: skip
    """(width in characters, number of filters), in order of concatenation."""
    activation: Literal["relu", "tanh"] = "relu"
    """Applied after the maximum over positions."""
    num_highway: int = 2
    """Highway layers after the convolutions; 0 for none."""

    def __post_init__(self) -> None:
        check_ranges(self, embedding_dim=(1, MAX_DIM), num_highway=(0, MAX_LAYERS))
        check_choices(self)
        is_valid = isinstance(self.filters, tuple | list) and all(map(_is_filter, self.filters))
        if not (is_valid and 0 < len(self.filters) <= MAX_LAYERS and self.num_filters <= MAX_DIM):
            raise ConfigError(
                f"`filters` must be 1 to {MAX_LAYERS} pairs (width, count) with widths from 1 to "
                f"{MAX_CHARACTERS} and counts from 1, at most {MAX_DIM:,} together, "
                f"got {shown(self.filters)}"
            )

    @property
    def num_filters(self) -> int:
        """F, the width of the concatenated convolutions."""
        return sum(count for _, count in self.filters)


def _is_filter(pair: object) -> bool:
    return (
        isinstance(pair, tuple | list)
        and len(pair) == 2
        and all(is_number(value, whole=True) and value >= 1 for value in pair)
        and pair[0] <= MAX_CHARACTERS
    )


class CharTokenEncoder(nn.Module):
    """Encode each token from its characters alone, or with a ``lexicon`` from its word's id, too.

    Each filter is convolved over the whole row, padding characters included as in the original,
    and its maximum over positions is activated. Highways and, unless F equals D, a linear
    projection follow. With a lexicon the word's vector is put before the last highway's output,
    and there is always a projection.

    Shape: (U, C), with a lexicon (U, C + 1) -> (U, D), with C = ``max_characters`` and
    D = ``output_dim``.
    Source: Peters et al. 2018, section 3.4; Kim et al. 2016.

    Raises:
        ValueError: if a filter is wider than a row.
    """

    def __init__(
        self,
        config: CharCNNConfig,
        *,
        output_dim: int,
        max_characters: int,
        lexicon: LexiconConfig | None = None,
    ) -> None:
        super().__init__()
        widest = max(width for width, _ in config.filters)
        if widest > max_characters:
            raise ValueError(
                f"A filter of width {widest} is wider than max_characters={max_characters}; use "
                "narrower filters or longer rows."
            )
        self.config = config
        self.max_characters = max_characters
        self.padding_id = PADDING_ID if lexicon is None else lexicons.PADDING
        num_chars = NUM_CHARS if lexicon is None else lexicon.character_rows
        self.char_embedding = nn.Embedding(num_chars, config.embedding_dim, padding_idx=0)
        self.word_embedding: nn.Embedding | None = None
        word_dim = 0
        if lexicon is not None:
            word_dim = lexicon.word_dim
            self.word_embedding = nn.Embedding(lexicon.word_rows, word_dim, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.embedding_dim, count, width) for width, count in config.filters
        )
        self.highways = nn.ModuleList(
            Highway(config.num_filters) for _ in range(config.num_highway)
        )
        last_dim = word_dim + config.num_filters
        needs_projection = lexicon is not None or last_dim != output_dim
        self.projection = nn.Linear(last_dim, output_dim) if needs_projection else None

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw weights from the original's distributions (bilm-tf, training graph)."""
        nn.init.uniform_(self.char_embedding.weight, -1.0, 1.0, generator=generator)
        with torch.no_grad():
            self.char_embedding.weight[0] = 0
        if self.word_embedding is not None:
            nn.init.uniform_(self.word_embedding.weight, -1.0, 1.0, generator=generator)
            with torch.no_grad():
                self.word_embedding.weight[0] = 0
        for convolution, width in self._filters():
            if self.config.activation == "relu":
                nn.init.uniform_(convolution.weight, -0.05, 0.05, generator=generator)
            else:
                std = (width * self.config.embedding_dim) ** -0.5
                nn.init.normal_(convolution.weight, std=std, generator=generator)
            assert convolution.bias is not None
            nn.init.zeros_(convolution.bias)
        for highway in self.highways:
            assert isinstance(highway, Highway)
            highway.reset_parameters(generator)
        if self.projection is not None:
            std = self.projection.in_features**-0.5
            nn.init.normal_(self.projection.weight, std=std, generator=generator)
            nn.init.zeros_(self.projection.bias)

    def forward(self, char_ids: Int[Tensor, "U C"]) -> Float[Tensor, "U D"]:
        """Encode the rows of ``char_ids``."""
        words = self.word_embedding
        row_length = self.max_characters + (words is not None)
        if char_ids.shape[1] != row_length:
            raise ValueError(
                f"`char_ids` must have rows of {row_length} characters, got "
                f"{tuple(char_ids.shape)}.\n"
                "Encode with this model's own vocabulary: model.char_vocab.encode(sentences)."
            )
        return self.finish(self._pool_by_length(char_ids[:, : self.max_characters]), char_ids)

    def finish(
        self, pooled: Float[Tensor, "U F"], char_ids: Int[Tensor, "U C"]
    ) -> Float[Tensor, "U D"]:
        """Encode tokens whose filters have the maxima ``pooled``: all that follows the maximum."""
        x = self.activate(pooled)
        for highway in self.highways:
            x = highway(x)
        if self.word_embedding is not None:
            x = torch.cat((self.word_embedding(char_ids[:, -1].long()), x), dim=1)
        return x if self.projection is None else self.projection(x)

    def activate(self, pooled: Float[Tensor, "*X"]) -> Float[Tensor, "*X"]:
        """Apply the activation to maxima of filters."""
        return torch.relu(pooled) if self.config.activation == "relu" else torch.tanh(pooled)

    def responses(self, char_ids: Int[Tensor, "U X"]) -> Iterator[Float[Tensor, "U P N"]]:
        """Yield, for each filter width, what its N filters answer to the P windows of the rows."""
        characters = self.char_embedding(char_ids.long())  # (U, X, E)
        for convolution, width in self._filters():
            windows = characters.unfold(1, width, 1).flatten(2)  # (U, P, E * width)
            yield functional.linear(windows, convolution.weight.flatten(1), convolution.bias)

    def _filters(self) -> Iterator[tuple[nn.Conv1d, int]]:
        for convolution, (width, _) in zip(self.convolutions, self.config.filters, strict=True):
            assert isinstance(convolution, nn.Conv1d)
            yield convolution, width

    def _pool_by_length(self, char_ids: Tensor) -> Tensor:
        """Convolve tokens of similar length together, without their common padding: (U, F).

        All windows of padding give a filter the same output, so one of them is enough for the
        maximum. Small batches keep whole rows, as in the original (docs/results/parity.md). Rows
        and columns come in blocks: products of a few fixed shapes give a token the same numbers in
        any batch and need few compiled kernels.
        """
        num_tokens = char_ids.shape[0]
        block = next(b for b in ROW_BLOCKS if num_tokens <= 8 * b or b == GROUP_SIZE)
        char_ids = functional.pad(char_ids, (0, 0, 0, -num_tokens % block))
        if num_tokens <= GROUP_SIZE:
            return self._pool(char_ids)[:num_tokens]
        order = self._is_real(char_ids).sum(dim=1).argsort(stable=True)
        groups = char_ids[order].split(GROUP_SIZE)
        pooled = torch.cat([self._pool(group[:, : self._used_columns(group)]) for group in groups])
        return pooled[order.argsort()[:num_tokens]]

    def _used_columns(self, char_ids: Tensor) -> int:
        """Return the columns needed for all real characters and one window of padding."""
        if torch.compiler.is_exporting():
            return self.max_characters
        used = self._is_real(char_ids).any(dim=0).nonzero()
        longest = int(used[-1]) + 1 if used.numel() else 0
        widest = max(width for width, _ in self.config.filters)
        needed = longest + widest
        return min(self.max_characters, needed + -needed % COLUMN_BLOCK)

    def _pool(self, char_ids: Tensor) -> Tensor:
        """Return each filter's maximum over positions, (U, C') -> (U, F)."""
        return torch.cat([x.max(dim=1).values for x in self.responses(char_ids)], dim=-1)

    def _is_real(self, char_ids: Tensor) -> Tensor:
        return (char_ids != self.padding_id) & (char_ids != 0)


class WordTokenEncoder(nn.Module):
    """Word embedding of word-input models: V + 1 rows; row 0 (padding) stays zero.

    Shape: (U,) -> (U, D), with D = ``output_dim``.
    """

    def __init__(self, num_words: int, *, output_dim: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_words + 1, output_dim, padding_idx=0)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw vectors from U(-1, 1), as the original does."""
        nn.init.uniform_(self.embedding.weight, -1.0, 1.0, generator=generator)
        with torch.no_grad():
            self.embedding.weight[0] = 0

    def forward(self, word_ids: Int[Tensor, " U"]) -> Float[Tensor, "U D"]:
        """Look up ``word_ids``."""
        return functional.embedding(word_ids.long(), self.embedding.weight, padding_idx=0)
