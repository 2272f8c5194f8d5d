"""The bidirectional language model: token layer, forward and backward LSTM stacks.

`BiLM` holds no LSTM state: it goes in and comes out as a `BiLMState`. The same sentence therefore
always gets the same vectors, and whoever wants the original's carried state passes it on.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.char_cnn import ROW_BLOCK, CharCNNConfig, CharTokenEncoder, WordTokenEncoder
from elmokit.bilm.lstmp import LSTMP, LSTMConfig
from elmokit.bilm.masking import lengths_of, reverse_sequences
from elmokit.text.char_vocab import CharVocab, CharVocabConfig

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
    """The character encoder; none for a model whose input is a word embedding."""
    num_words: int | None = None
    """V, rows of the word embedding; only for word-input models. 0: pre-training fills it in from
    the vocabulary."""
    lstm: LSTMConfig = field(default_factory=LSTMConfig)
    """The LSTM stacks."""
    dropout: float = 0.1
    """Share of values dropped in training at each LSTM layer's input and at the top output."""

    def __post_init__(self) -> None:
        """Refuse combinations that cannot be built."""
        if (self.char_cnn is None) == (self.num_words is None):
            raise ValueError(
                "set either `char_cnn` (character input) or `num_words` (word input), not both or "
                "neither; for word input char_cnn=none and num_words=0, which pre-training fills "
                "in from the vocabulary"
            )
        if self.num_words is not None and self.num_words < 0:
            raise ValueError("`num_words` must be at least 0")
        if not 0 <= self.dropout < 1:
            raise ValueError("`dropout` must be at least 0 and below 1")


@dataclass(frozen=True)
class BiLMState:
    """LSTM memory of B rows of text, to be carried on.

    Row *k* of one batch goes on from row *k* of the state. ``hidden`` is the projected, clipped
    output without the skip connection, as the recurrence sees it.
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
        """Return the state before any text."""
        shape = (config.num_layers, 2, num_rows)
        return cls(
            torch.zeros(*shape, config.projection_dim, device=device, dtype=dtype),
            torch.zeros(*shape, config.cell_dim, device=device, dtype=dtype),
        )

    @classmethod
    def from_directions(cls, forward: DirectionState, backward: DirectionState) -> "BiLMState":
        """Join the states of the two directions."""
        return cls(
            torch.stack((forward[0], backward[0]), dim=1),
            torch.stack((forward[1], backward[1]), dim=1),
        )

    @property
    def num_rows(self) -> int:
        """B, the number of rows."""
        return self.hidden.shape[2]

    def direction(self, direction: Direction) -> DirectionState:
        """Return (hidden (N, B, D), cell (N, B, H)) of one direction."""
        index = 0 if direction == "forward" else 1
        return self.hidden[:, index], self.cell[:, index]

    def detach(self) -> "BiLMState":
        """Return the state without its graph: truncated back-propagation stops here."""
        return BiLMState(self.hidden.detach(), self.cell.detach())

    def rows(self, index: slice | Int[Tensor, " R"]) -> "BiLMState":
        """Return the state of some of the rows."""
        return BiLMState(self.hidden[:, :, index], self.cell[:, :, index])

    def zeroed(self, rows: Bool[Tensor, " B"]) -> "BiLMState":
        """Return the state with ``rows`` as before any text."""
        zeros = rows.view(1, 1, -1, 1)
        return BiLMState(self.hidden.masked_fill(zeros, 0), self.cell.masked_fill(zeros, 0))

    def with_more_rows(self, num_rows: int) -> "BiLMState":
        """Return the state with zero rows after its own, ``num_rows`` in all."""
        padding = (0, 0, 0, num_rows - self.num_rows)
        return BiLMState(functional.pad(self.hidden, padding), functional.pad(self.cell, padding))


@dataclass(frozen=True)
class BiLMOutput:
    """What a biLM makes of a batch of sentences."""

    layers: Float[Tensor, "L B T E2"]
    """Layer 0: the token layer twice; layer l: [forward l | backward l]. Padded positions are 0."""
    mask: Bool[Tensor, "B T"]
    """True at real positions, boundaries included."""
    state: BiLMState
    """Memory after each row's last real position."""


class BiLM(nn.Module):
    """Bidirectional language model over characters (or words), without its softmax.

    Args:
        config: Shape of the model.
        initialize: Draw fresh weights (seed 0); False where others take their place at once.

    Shape: ids (B, T, C), or (B, T) for word input -> `BiLMOutput`.
    Source: Peters et al. 2018, sections 3.1 and 3.4.
    """

    def __init__(self, config: BiLMConfig, *, initialize: bool = True) -> None:
        super().__init__()
        self.config = config
        self.char_vocab = CharVocab(config.char_vocab)
        dim = config.lstm.projection_dim
        if config.char_cnn is not None:
            self.token_encoder: nn.Module = CharTokenEncoder(
                config.char_cnn, output_dim=dim, max_characters=config.char_vocab.max_characters
            )
        else:
            if not config.num_words:
                raise ValueError("`num_words` is 0: a model of word input needs its vocabulary's V")
            self.token_encoder = WordTokenEncoder(config.num_words, output_dim=dim)
        self.forward_layers = nn.ModuleList(
            LSTMP(dim, config.lstm) for _ in range(config.lstm.num_layers)
        )
        self.backward_layers = nn.ModuleList(
            LSTMP(dim, config.lstm) for _ in range(config.lstm.num_layers)
        )
        if initialize:
            self.reset_parameters(torch.Generator().manual_seed(0))

    @property
    def num_layers(self) -> int:
        """L, the token layer included."""
        return self.config.lstm.num_layers + 1

    @property
    def output_dim(self) -> int:
        """2D, the width of a layer's vectors."""
        return 2 * self.config.lstm.projection_dim

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh weights with the original's distributions.

        Args:
            generator: On the CPU: the weights are then the same on every machine.
        """
        self.token_encoder.reset_parameters(generator)  # pyright: ignore[reportCallIssue]
        for layer in (*self.forward_layers, *self.backward_layers):
            layer.reset_parameters(generator)  # pyright: ignore[reportCallIssue]

    def encode_tokens(self, ids: Int[Tensor, "U C"] | Int[Tensor, " U"]) -> Float[Tensor, "U D"]:
        """Return the token layer's vectors of U tokens, given as character rows or as word ids."""
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
            x: Token vectors in the order in which this direction reads (for ``backward``: last word
                first).
            state: (hidden (N, B, D), cell (N, B, H)) to start from.
            mask: True at real positions; none if all are.
            dropout: Applied to every layer's input; none outside training. The skip connection adds
                the dropped input.
            run_layer: A faster way to run one layer, equal to `LSTMP.forward`; none: the plain one.

        Returns:
            The N layer outputs (B, T, D), in reading order, skip connections added; and the new
            state.
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
        """Encode sentences, boundaries included.

        Args:
            ids: Character ids (B, T, C), or word ids (B, T) for word-input models; padded positions
                are 0 throughout.
            state: Memory of at least B rows to start from; none: zeros.

        Raises:
            ValueError: if the shape does not fit the model, padding stands before real tokens or
                ``state`` has too few rows.
        """
        self._check_shape(ids)
        num_rows = ids.shape[0]
        if state is not None and state.num_rows < num_rows:
            raise ValueError(
                f"`state` has {state.num_rows} rows, the batch {num_rows}; it needs at least as "
                "many."
            )
        padded = functional.pad(ids, (0, 0) * (ids.dim() - 1) + (0, -num_rows % ROW_BLOCK))
        out = self._forward_block(padded, self._start(state, num_rows, padded.shape[0]))
        rows = slice(0, num_rows)
        return BiLMOutput(out.layers[:, rows], out.mask[rows], out.state.rows(rows))

    def _start(self, state: BiLMState | None, num_rows: int, num_padded: int) -> BiLMState:
        """Return the state to start from, with zeros for rows that only fill up a block."""
        weight = self.forward_layers[0].get_parameter("input_weight")
        zeros = BiLMState.zeros(
            self.config.lstm, num_padded, device=weight.device, dtype=weight.dtype
        )
        if state is None:
            return zeros
        missing = slice(num_rows, num_padded)
        return BiLMState(
            torch.cat((state.hidden[:, :, :num_rows], zeros.hidden[:, :, missing]), dim=2),
            torch.cat((state.cell[:, :, :num_rows], zeros.cell[:, :, missing]), dim=2),
        )

    def _forward_block(self, ids: Tensor, state: BiLMState) -> BiLMOutput:
        """Encode a batch whose number of rows is a multiple of `ROW_BLOCK`."""
        mask = (ids > 0).any(dim=2) if ids.dim() == 3 else ids > 0
        lengths = lengths_of(mask)
        tokens = self.encode_tokens(ids.flatten(0, 1)).unflatten(0, tuple(mask.shape))
        tokens = tokens * mask.unsqueeze(2)  # (B, T, D)
        forward, forward_state = self.run_direction(
            "forward", tokens, state=state.direction("forward"), mask=mask
        )
        backward, backward_state = self.run_direction(
            "backward",
            reverse_sequences(tokens, lengths),
            state=state.direction("backward"),
            mask=mask,
        )
        layers = [torch.cat((tokens, tokens), dim=-1)]
        for ahead, back in zip(forward, backward, strict=True):
            layers.append(torch.cat((ahead, reverse_sequences(back, lengths)), dim=-1))
        return BiLMOutput(
            torch.stack(layers), mask, BiLMState.from_directions(forward_state, backward_state)
        )

    def _check_shape(self, ids: Tensor) -> None:
        if self.config.char_cnn is None:
            if ids.dim() != 2:
                raise ValueError(f"`word_ids` must have shape (B, T), got {tuple(ids.shape)}.")
            return
        characters = self.config.char_vocab.max_characters
        if ids.dim() != 3 or ids.shape[2] != characters:
            raise ValueError(
                f"`char_ids` must have shape (B, T, {characters}), got {tuple(ids.shape)}.\n"
                "Encode with this model's own vocabulary: model.char_vocab.encode(sentences)."
            )
