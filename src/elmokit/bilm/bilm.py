"""The bidirectional language model: token layer, forward and backward LSTM stacks.

`BiLM` keeps no LSTM state: callers pass a `BiLMState` in and get the new one back.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.char_cnn import ROW_BLOCK, CharCNNConfig, CharTokenEncoder, WordTokenEncoder
from elmokit.bilm.lstmp import LSTMP, LSTMConfig
from elmokit.bilm.masking import lengths_of, mask_of, reverse_sequences
from elmokit.errors import ConfigError
from elmokit.field_checks import check_ranges, is_number
from elmokit.kernels.forking import use_one_thread_after_a_fork
from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.text.lexicon import Lexicon, LexiconConfig, LexiconVocab
from elmokit.wording import shown

MAX_WORDS = 2**31 - 2
"""Of a vocabulary: word ids are int32 in places."""
Direction = Literal["forward", "backward"]
DirectionState = tuple[Tensor, Tensor]
"""(hidden (N, B, D), cell (N, B, H)) of one direction."""
LayerRunner = Callable[
    [LSTMP, Tensor, DirectionState, Tensor | None], tuple[Tensor, DirectionState]
]
"""(layer, x (B, T, D), state ((B, D), (B, H)), mask) -> (outputs, state), as `LSTMP.forward`."""


@dataclass(frozen=True, kw_only=True)
class BiLMConfig:
    """Everything that determines a biLM's parameters and numbers; by default the original model."""

    char_vocab: CharVocabConfig = field(default_factory=CharVocabConfig)
    """Characters per token, normalization and truncation."""
    char_cnn: CharCNNConfig | None = field(default_factory=CharCNNConfig)
    """The character encoder; none for word-input models."""
    num_words: int | None = None
    """V, for word-input models only. 0: pre-training sets it from the vocabulary."""
    lexicon: LexiconConfig | None = None
    """Characters and words by lists instead of bytes: imported models of ELMoForManyLangs."""
    lstm: LSTMConfig = field(default_factory=LSTMConfig)
    """The LSTM stacks."""
    dropout: float = 0.1
    """Share of values dropped in training at each LSTM layer's input and at the top output."""

    def __post_init__(self) -> None:
        if (self.char_cnn is None) == (self.num_words is None):
            raise ValueError(
                "set either `char_cnn` (character input) or `num_words` (word input), not both or "
                "neither; for word input, char_cnn=none and num_words=0, which pre-training sets "
                "from the vocabulary"
            )
        check_ranges(self, num_words=(0, MAX_WORDS))
        if self.lexicon is not None and self.char_cnn is None:
            raise ConfigError("`lexicon` needs `char_cnn`: such models also read characters")
        if not (is_number(self.dropout) and 0 <= self.dropout < 1):
            raise ConfigError(
                f"`dropout` must be a number from 0 to below 1, got {shown(self.dropout)}"
            )


@dataclass(frozen=True)
class BiLMState:
    """LSTM memory of B rows of text: row *k* of the next batch continues from row *k*.

    ``hidden`` is the projected, clipped output before the skip connection is added.
    """

    hidden: Float[Tensor, "N 2 B D"]
    """Axis 1: 0 forward, 1 backward."""
    cell: Float[Tensor, "N 2 B H"]

    @classmethod
    def zeros(
        cls,
        config: LSTMConfig,
        num_rows: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> "BiLMState":
        """Return the state before any text has been read."""
        shape = (config.num_layers, 2, num_rows)
        return cls(
            torch.zeros(*shape, config.projection_dim, device=device, dtype=dtype),
            torch.zeros(*shape, config.cell_dim, device=device, dtype=dtype),
        )

    @classmethod
    def from_directions(cls, forward: DirectionState, backward: DirectionState) -> "BiLMState":
        """Join the states of the two directions."""
        hidden, cell = (torch.stack(pair, dim=1) for pair in zip(forward, backward, strict=True))
        return cls(hidden, cell)

    @property
    def num_rows(self) -> int:
        """B, the number of rows."""
        return self.hidden.shape[2]

    def direction(self, direction: Direction) -> DirectionState:
        """Return (hidden (N, B, D), cell (N, B, H)) of one direction."""
        index = 0 if direction == "forward" else 1
        return self.hidden[:, index], self.cell[:, index]

    def detach(self) -> "BiLMState":
        """Return the state without its graph, for truncated back-propagation."""
        return BiLMState(self.hidden.detach(), self.cell.detach())

    def rows(self, index: slice | Int[Tensor, " R"]) -> "BiLMState":
        """Return the state of some of the rows."""
        return BiLMState(self.hidden[:, :, index], self.cell[:, :, index])

    def zeroed(self, rows: Bool[Tensor, " B"]) -> "BiLMState":
        """Return a copy with ``rows`` reset to zero."""
        zeros = rows.view(1, 1, -1, 1)
        return BiLMState(self.hidden.masked_fill(zeros, 0), self.cell.masked_fill(zeros, 0))

    def with_more_rows(self, num_rows: int) -> "BiLMState":
        """Return the state padded with zero rows to ``num_rows``."""
        padding = (0, 0, 0, num_rows - self.num_rows)
        return BiLMState(functional.pad(self.hidden, padding), functional.pad(self.cell, padding))


@dataclass(frozen=True)
class BiLMOutput:
    """The layers of a batch of sentences."""

    layers: Float[Tensor, "L B T E2"]
    """Layer 0: the token layer twice; layer l: [forward l | backward l]. Padded positions are 0."""
    mask: Bool[Tensor, "B T"]
    """True at real positions, boundaries included."""
    state: BiLMState
    """After each row's last real position."""


class BiLM(nn.Module):
    """Bidirectional language model over characters (or words), without its softmax.

    ``initialize`` draws weights with seed 0; False if weights are loaded next. ``lexicon`` holds
    the lists that ``config.lexicon`` describes.

    Shape: ids (B, T, C), or (B, T) for word input -> `BiLMOutput`.
    Source: Peters et al. 2018, sections 3.1 and 3.4.
    """

    def __init__(
        self, config: BiLMConfig, *, lexicon: Lexicon | None = None, initialize: bool = True
    ) -> None:
        super().__init__()
        use_one_thread_after_a_fork()
        self.config = config
        self.char_vocab = _char_vocab(config, lexicon)
        dim = config.lstm.projection_dim
        if config.char_cnn is not None:
            self.token_encoder: nn.Module = CharTokenEncoder(
                config.char_cnn, output_dim=dim, max_characters=config.char_vocab.max_characters,
                lexicon=config.lexicon,
            )  # fmt: skip
        else:
            if not config.num_words:
                raise ValueError("`num_words` is 0: a word-input model needs its vocabulary's size")
            self.token_encoder = WordTokenEncoder(config.num_words, output_dim=dim)
        self.forward_layers, self.backward_layers = (
            nn.ModuleList(LSTMP(dim, config.lstm) for _ in range(config.lstm.num_layers))
            for _ in range(2)
        )
        if initialize:
            self.reset_parameters(torch.Generator().manual_seed(0))

    def __setstate__(self, state: dict[str, Any]) -> None:
        use_one_thread_after_a_fork()
        super().__setstate__(state)

    @property
    def num_layers(self) -> int:
        """L, the token layer included."""
        return self.config.lstm.num_layers + 1

    @property
    def output_dim(self) -> int:
        """2D, the width of a layer's vectors."""
        return 2 * self.config.lstm.projection_dim

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw weights from the original's distributions; a CPU generator is reproducible."""
        self.token_encoder.reset_parameters(generator)  # pyright: ignore[reportCallIssue]
        for layer in (*self.forward_layers, *self.backward_layers):
            layer.reset_parameters(generator)  # pyright: ignore[reportCallIssue]

    def encode_tokens(self, ids: Int[Tensor, "U C"] | Int[Tensor, " U"]) -> Float[Tensor, "U D"]:
        """Return the token layer's vectors for character rows or word ids."""
        return self.token_encoder(ids)

    def run_direction(
        self,
        direction: Direction,
        x: Float[Tensor, "B T D"],
        *,
        state: DirectionState,
        mask: Bool[Tensor, "B T"] | None = None,
        dropout: Callable[[Tensor], Tensor] | None = None,
        run_layer: LayerRunner | None = None,
    ) -> tuple[list[Tensor], DirectionState]:
        """Run one direction's stack over token vectors.

        Args:
            direction: Which stack.
            x: Token vectors in reading order (``backward``: last word first).
            state: (hidden (N, B, D), cell (N, B, H)) to start from.
            mask: True at real positions; none if all are.
            dropout: Applied to every layer's input; the skip connection adds the dropped input.
            run_layer: A faster equivalent of `LSTMP.forward`.

        Returns:
            The N layer outputs (B, T, D) in reading order, skip connections added, and the state.
        """
        stack = self.forward_layers if direction == "forward" else self.backward_layers
        outputs, hiddens, cells = [], [], []
        for index, layer in enumerate(stack):
            layer_in = x if dropout is None else dropout(x)
            layer_state = (state[0][index], state[1][index])
            x, (hidden, cell) = (
                layer(layer_in, layer_state, mask)
                if run_layer is None
                else run_layer(layer, layer_in, layer_state, mask)  # pyright: ignore[reportArgumentType]
            )
            if index > 0 and self.config.lstm.skip_connections:
                x = x + layer_in
            outputs.append(x)
            hiddens.append(hidden)
            cells.append(cell)
        return outputs, (torch.stack(hiddens), torch.stack(cells))

    def forward(
        self, ids: Int[Tensor, "B T C"] | Int[Tensor, "B T"], *, state: BiLMState | None = None
    ) -> BiLMOutput:
        """Encode sentences with their boundaries.

        Args:
            ids: Character ids (B, T, C), or word ids (B, T) for word-input models; 0 where padded.
            state: Memory of at least B rows to start from; none: zeros.

        Raises:
            ValueError: if the shape does not fit the model, padding comes before real tokens, or
                ``state`` has too few rows.
        """
        self.check_shape(ids)
        num_rows = ids.shape[0]
        check_state_rows(state, num_rows)
        padded = functional.pad(ids, (0, 0) * (ids.dim() - 1) + (0, -num_rows % ROW_BLOCK))
        weight = self.forward_layers[0].get_parameter("input_weight")
        start = BiLMState.zeros(
            self.config.lstm, padded.shape[0], device=weight.device, dtype=weight.dtype
        )
        if state is not None:
            start.hidden[:, :, :num_rows] = state.hidden[:, :, :num_rows]
            start.cell[:, :, :num_rows] = state.cell[:, :, :num_rows]
        out = self._forward_block(padded, start)
        rows = slice(0, num_rows)
        return BiLMOutput(out.layers[:, rows], out.mask[rows], out.state.rows(rows))

    def _forward_block(self, ids: Tensor, state: BiLMState) -> BiLMOutput:
        """Encode a batch whose number of rows is a multiple of `ROW_BLOCK`."""
        mask = mask_of(ids)
        lengths = lengths_of(mask)
        tokens = self.encode_tokens(ids.flatten(0, 1)).unflatten(0, tuple(mask.shape))
        tokens = tokens * mask.unsqueeze(2)  # (B, T, D)
        forward, forward_state = self.run_direction(
            "forward", tokens, state=state.direction("forward"), mask=mask
        )
        reverse = reverse_sequences(tokens, lengths)
        backward, backward_state = self.run_direction(
            "backward", reverse, state=state.direction("backward"), mask=mask
        )
        layers = [torch.cat((tokens, tokens), dim=-1)]
        for ahead, back in zip(forward, backward, strict=True):
            layers.append(torch.cat((ahead, reverse_sequences(back, lengths)), dim=-1))
        return BiLMOutput(
            torch.stack(layers), mask, BiLMState.from_directions(forward_state, backward_state)
        )

    @property
    def num_input_ids(self) -> tuple[int, ...]:
        """Numbers of ids, padding included, of each kind that the token encoder reads.

        Those of characters (or of words); with a lexicon, also those of words, which are last in a
        row.
        """
        tables = self.token_encoder.modules()
        return tuple(one.num_embeddings for one in tables if isinstance(one, nn.Embedding))

    def check_shape(self, ids: Any) -> None:
        """Check the shape of ids: (B, T, C), for a word-input model (B, T).

        Raises:
            TypeError: if they are no tensor of integers.
            ValueError: if they have another shape.
        """
        reads_words = self.config.char_cnn is None
        check_ids_shape(ids, row_length=None if reads_words else self.char_vocab.row_length)


def check_ids_shape(ids: Any, *, row_length: int | None) -> None:
    """Check that ids are (B, T, row_length), without a row length (B, T).

    Raises:
        TypeError: if they are no tensor of integers.
        ValueError: if they have another shape.
    """
    name, row = ("word_ids", ()) if row_length is None else ("char_ids", (row_length,))
    is_tensor = isinstance(ids, Tensor)
    is_integer = is_tensor and not ids.dtype.is_floating_point and ids.dtype != torch.bool
    if is_integer and ids.dim() == 2 + len(row) and tuple(ids.shape[2:]) == row:
        return
    got = tuple(ids.shape) if is_integer else ids.dtype if is_tensor else type(ids).__name__
    raise (ValueError if is_integer else TypeError)(
        f"`{name}` must have shape (B, T{''.join(f', {length}' for length in row)}) and be a "
        f"tensor of integers, got {got}.\nEncode sentences with elmo.encode(sentences), "
        "model.encode(sentences) or, for original weights, elmokit.batch_to_ids(sentences)."
    )


def check_state_rows(state: BiLMState | None, num_rows: int) -> None:
    """Check that a state has a row for each of a batch.

    Raises:
        ValueError: if it has fewer.
    """
    if state is not None and state.num_rows < num_rows:
        raise ValueError(f"`state` has {state.num_rows} rows, fewer than the batch's {num_rows}.")


def _char_vocab(config: BiLMConfig, lexicon: Lexicon | None) -> CharVocab:
    if config.lexicon is None and lexicon is None:
        return CharVocab(config.char_vocab)
    found = None
    if config.lexicon is not None and lexicon is not None:
        found = lexicon.config(word_dim=config.lexicon.word_dim)
    if lexicon is None or found != config.lexicon:
        raise ConfigError(
            "The lists of characters and words are missing, or not those that the configuration "
            f"describes: {config.lexicon}, got {found}."
        )
    return LexiconVocab(config.char_vocab, lexicon)
