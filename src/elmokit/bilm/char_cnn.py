"""The token layer: what a word's bytes alone say about it (character CNN, highways, projection).

Also the plain word embedding that takes its place in word-input models.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.highway import Highway
from elmokit.text.char_vocab import CHAR_PADDING, NUM_CHARS

PADDING_ID = CHAR_PADDING + 1
"""The padding character in id tensors: a trained row like any other; id 0 is a padded token."""

GROUP_SIZE = 256
"""Tokens of like length that are convolved together."""
ROW_BLOCK = 8
"""Tokens, or sentences, come in multiples of this: products of fewer rows round otherwise."""
ROW_BLOCKS = (ROW_BLOCK, 4 * ROW_BLOCK, GROUP_SIZE)
"""What the number of tokens is rounded up to: the first that is at least an eighth of it."""
COLUMN_BLOCK = 8
"""Characters of a group come in multiples of this."""


@dataclass(frozen=True, kw_only=True)
class CharCNNConfig:
    """Shape of the character encoder. The defaults are those of the released models."""

    embedding_dim: int = 16
    """Width of one character's embedding."""
    filters: tuple[tuple[int, int], ...] = (
        (1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024),
    )  # fmt: skip
    """(width in characters, number of filters), in the order in which they are concatenated."""
    activation: Literal["relu", "tanh"] = "relu"
    """Applied after the maximum over positions."""
    num_highway: int = 2
    """Highway layers after the convolutions; 0 for none."""

    def __post_init__(self) -> None:
        """Refuse shapes that cannot be built."""
        if not self.filters or any(width < 1 or count < 1 for width, count in self.filters):
            raise ValueError("`filters` must hold pairs (width, count), both at least 1")
        if self.embedding_dim < 1 or self.num_highway < 0:
            raise ValueError("`embedding_dim` must be at least 1 and `num_highway` at least 0")

    @property
    def num_filters(self) -> int:
        """F, the width of the concatenated convolutions."""
        return sum(count for _, count in self.filters)


class CharTokenEncoder(nn.Module):
    """Encode each token from its characters alone.

    Every filter is convolved over the whole row without masking (the padding character has a
    learned embedding and takes part, as in the original), maximised over positions, then activated;
    then come the highways and a linear projection, which is absent where F equals D.

    Args:
        config: Shape of the encoder.
        output_dim: D, the width of a token vector.
        max_characters: C, the length of an id row.

    Shape: (U, C) -> (U, D).
    Source: Peters et al. 2018, section 3.4; Kim et al. 2016.

    Raises:
        ValueError: if a filter is wider than a row.
    """

    def __init__(self, config: CharCNNConfig, *, output_dim: int, max_characters: int) -> None:
        super().__init__()
        widest = max(width for width, _ in config.filters)
        if widest > max_characters:
            raise ValueError(
                f"A filter of width {widest} does not fit rows of max_characters={max_characters}; "
                "use narrower filters or longer rows."
            )
        self.config = config
        self.max_characters = max_characters
        self.char_embedding = nn.Embedding(NUM_CHARS, config.embedding_dim, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.embedding_dim, count, width) for width, count in config.filters
        )
        self.highways = nn.ModuleList(
            Highway(config.num_filters) for _ in range(config.num_highway)
        )
        needs_projection = config.num_filters != output_dim
        self.projection = nn.Linear(config.num_filters, output_dim) if needs_projection else None

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh weights with the original's distributions (bilm-tf, training graph)."""
        nn.init.uniform_(self.char_embedding.weight, -1.0, 1.0, generator=generator)
        with torch.no_grad():
            self.char_embedding.weight[0] = 0
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
            std = self.config.num_filters**-0.5
            nn.init.normal_(self.projection.weight, std=std, generator=generator)
            nn.init.zeros_(self.projection.bias)

    def forward(self, char_ids: Int[Tensor, "U C"]) -> Float[Tensor, "U D"]:
        """Return one vector per row of ``char_ids``."""
        if char_ids.shape[1] != self.max_characters:
            raise ValueError(
                f"`char_ids` must have rows of {self.max_characters} characters, got "
                f"{tuple(char_ids.shape)}.\n"
                "Encode with this model's own vocabulary: model.char_vocab.encode(sentences)."
            )
        activate = torch.relu if self.config.activation == "relu" else torch.tanh
        x = activate(self._pool_by_length(char_ids))  # (U, F)
        for highway in self.highways:
            x = highway(x)
        return x if self.projection is None else self.projection(x)

    def _filters(self) -> Iterator[tuple[nn.Conv1d, int]]:
        """Yield the filters of each width with the width."""
        for convolution, (width, _) in zip(self.convolutions, self.config.filters, strict=True):
            assert isinstance(convolution, nn.Conv1d)
            yield convolution, width

    def _pool_by_length(self, char_ids: Tensor) -> Tensor:
        """Convolve and maximize tokens of like length together, over their real length: (U, F).

        All windows over padding characters alone have the same answer, so one of them a filter is
        enough for the maximum. A few tokens keep their whole rows, as in the original: there is
        little to save, and training stays nearer to it (docs/results/parity.md). Rows and columns
        come in blocks: products of a few fixed shapes give a token the same numbers in any company,
        and need few compiled kernels.
        """
        num_tokens = char_ids.shape[0]
        block = next(b for b in ROW_BLOCKS if num_tokens <= 8 * b or b == GROUP_SIZE)
        char_ids = functional.pad(char_ids, (0, 0, 0, -num_tokens % block))
        if num_tokens <= GROUP_SIZE:
            return self._pool(char_ids)[:num_tokens]
        order = _is_real(char_ids).sum(dim=1).argsort(stable=True)
        groups = char_ids[order].split(GROUP_SIZE)
        pooled = torch.cat([self._pool(group[:, : self._used_columns(group)]) for group in groups])
        return pooled[order.argsort()[:num_tokens]]

    def _used_columns(self, char_ids: Tensor) -> int:
        """Return how many columns hold all real characters and, for each filter, some padding."""
        if torch.compiler.is_exporting():
            return self.max_characters
        used = _is_real(char_ids).any(dim=0).nonzero()
        longest = int(used[-1]) + 1 if used.numel() else 0
        widest = max(width for width, _ in self.config.filters)
        needed = longest + widest
        return min(self.max_characters, needed + -needed % COLUMN_BLOCK)

    def _pool(self, char_ids: Tensor) -> Tensor:
        """Return each filter's maximum over positions, (U, C') -> (U, F).

        A convolution is computed as a product with its windows.
        """
        characters = self.char_embedding(char_ids.long())  # (U, C', E)
        pooled = []
        for convolution, width in self._filters():
            windows = characters.unfold(1, width, 1).flatten(2)  # (U, C' - width + 1, E * width)
            answers = functional.linear(windows, convolution.weight.flatten(1), convolution.bias)
            pooled.append(answers.max(dim=1).values)
        return torch.cat(pooled, dim=-1)


def _is_real(char_ids: Tensor) -> Tensor:
    """Tell which characters are neither padding of a token nor of a sentence."""
    return (char_ids != PADDING_ID) & (char_ids != 0)


class WordTokenEncoder(nn.Module):
    """Look up each token in a table of word vectors (word-input models).

    Args:
        num_words: V, vocabulary lines; row 0 of the table is the padded token and stays zero.
        output_dim: D, the width of a token vector.

    Shape: (U,) -> (U, D).
    """

    def __init__(self, num_words: int, *, output_dim: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_words + 1, output_dim, padding_idx=0)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh vectors from U(-1, 1), as the original does."""
        nn.init.uniform_(self.embedding.weight, -1.0, 1.0, generator=generator)
        with torch.no_grad():
            self.embedding.weight[0] = 0

    def forward(self, word_ids: Int[Tensor, " U"]) -> Float[Tensor, "U D"]:
        """Return one vector per id."""
        return functional.embedding(word_ids.long(), self.embedding.weight, padding_idx=0)
