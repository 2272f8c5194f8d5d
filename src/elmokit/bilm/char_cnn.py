"""The token layer: a character CNN with highways, or a word embedding in word-input models."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.config import CharCNNConfig, padding_id
from elmokit.shapes import Float, Int
from elmokit.text.char_vocab import NUM_CHARS
from elmokit.text.lexicon import LexiconConfig


class Highway(nn.Module):
    """One highway layer: ``g * relu(transform(x)) + (1 - g) * x`` with ``g = sigmoid(carry(x))``.

    The original files call the gate *carry*, although it multiplies the transformed branch. Its
    bias starts at -2, so a new layer nearly copies its input.

    Shape: (U, F) -> (U, F).
    Source: Peters et al. 2018, section 3.4 (the CNN-BIG-LSTM of Józefowicz et al. 2016).
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.carry = nn.Linear(dim, dim)
        self.transform = nn.Linear(dim, dim)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw weights as the original does: N(0, 1/F), biases 0 and -2."""
        std = self.carry.in_features**-0.5
        for linear, bias in ((self.carry, -2.0), (self.transform, 0.0)):
            nn.init.normal_(linear.weight, std=std, generator=generator)
            nn.init.constant_(linear.bias, bias)

    def forward(self, x: Float[Tensor, "U F"]) -> Float[Tensor, "U F"]:
        gate = torch.sigmoid(self.carry(x))
        return gate * torch.relu(self.transform(x)) + (1 - gate) * x


class CharTokenEncoder(nn.Module):
    """Encode each token from its characters alone, or with a ``lexicon`` from its word's id, too.

    Each filter is convolved over the whole row, padding characters included as in the original,
    and its maximum over positions is activated. Highways and, unless F equals D, a linear
    projection follow. With a lexicon the word's vector is put before the last highway's output,
    and there is always a projection.

    Shape: (U, C), with a lexicon (U, C + 1) -> (U, D).
    Source: Peters et al. 2018, section 3.4; Kim et al. 2016.
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
        self.config = config
        self.max_characters = max_characters
        self.padding_id = padding_id(lexicon)
        num_chars = NUM_CHARS if lexicon is None else lexicon.character_rows
        self.char_embedding = nn.Embedding(num_chars, config.embedding_dim, padding_idx=0)
        word_dim, self.word_embedding = 0, None
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
        _reset_embedding(self.char_embedding, generator)
        if self.word_embedding is not None:
            _reset_embedding(self.word_embedding, generator)
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
        row_length = self.max_characters + (self.word_embedding is not None)
        if char_ids.shape[1] != row_length:
            raise ValueError(
                f"`char_ids` must have rows of {row_length}, got shape {tuple(char_ids.shape)}"
            )
        answers = self.responses(char_ids[:, : self.max_characters])
        pooled = torch.cat([answer.max(dim=1).values for answer in answers], dim=1)  # (U, F)
        return self.finish(pooled, char_ids)

    def finish(
        self, pooled: Float[Tensor, "U F"], char_ids: Int[Tensor, "U C"]
    ) -> Float[Tensor, "U D"]:
        """Encode tokens whose filters have the maxima ``pooled``: all that follows the maximum."""
        x = torch.relu(pooled) if self.config.activation == "relu" else torch.tanh(pooled)
        for highway in self.highways:
            x = highway(x)
        if self.word_embedding is not None:
            x = torch.cat((self.word_embedding(char_ids[:, -1].long()), x), dim=1)
        return x if self.projection is None else self.projection(x)

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


class WordTokenEncoder(nn.Module):
    """Word embedding of word-input models: V + 1 rows; row 0 (padding) stays zero.

    Shape: (U,) -> (U, D), with D = ``output_dim``.
    """

    def __init__(self, num_words: int, *, output_dim: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_words + 1, output_dim, padding_idx=0)

    def reset_parameters(self, generator: torch.Generator) -> None:
        _reset_embedding(self.embedding, generator)

    def forward(self, word_ids: Int[Tensor, " U"]) -> Float[Tensor, "U D"]:
        return self.embedding(word_ids.long())


@torch.no_grad()
def _reset_embedding(embedding: nn.Embedding, generator: torch.Generator) -> None:
    """Draw vectors from U(-1, 1), as the original does; that of padding is 0."""
    nn.init.uniform_(embedding.weight, -1.0, 1.0, generator=generator)
    embedding.weight[0] = 0
