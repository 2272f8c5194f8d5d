"""The bidirectional language model: token layer, forward and backward LSTM stacks.

`BiLM` keeps no LSTM state: callers pass a `BiLMState` in and get the new one back.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.bilm.char_cnn import CharTokenEncoder, WordTokenEncoder
from elmokit.bilm.config import BiLMConfig, Direction, LSTMConfig
from elmokit.bilm.lstmp import LSTMP
from elmokit.bilm.masking import lengths_of, mask_of, reverse_sequences
from elmokit.shapes import Bool, Float, Int
from elmokit.text.char_vocab import CharVocab

DirectionState = tuple[Tensor, Tensor]
"""(hidden (N, B, D), cell (N, B, H)) of one direction."""


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


@dataclass(frozen=True)
class BiLMOutput:
    """The layers of a batch of sentences."""

    layers: Float[Tensor, "L B T E2"]
    """Layer 0: the token layer twice; layer l: [forward l | backward l]. Padded positions are 0."""
    mask: Bool[Tensor, "B T"]
    state: BiLMState
    """After each row's last real position."""


class BiLM(nn.Module):
    """Bidirectional language model over characters (or words), without its softmax.

    Args:
        config: Shape of the network.
        initialize: Draw weights with seed 0; False if weights are loaded next.

    Shape: ids (B, T, C), or (B, T) for word input -> `BiLMOutput`.
    Source: Peters et al. 2018, sections 3.1 and 3.4.
    """

    def __init__(self, config: BiLMConfig, *, initialize: bool = True) -> None:
        super().__init__()
        self.config = config
        self.char_vocab = CharVocab(config.char_vocab)
        dim = config.lstm.projection_dim
        self.token_encoder: nn.Module
        if config.char_cnn is not None:
            self.token_encoder = CharTokenEncoder(
                config.char_cnn,
                output_dim=dim,
                max_characters=config.char_vocab.max_characters,
                lexicon=config.lexicon,
            )
        else:
            self.token_encoder = WordTokenEncoder(config.num_words or 0, output_dim=dim)
        self.forward_layers, self.backward_layers = (
            nn.ModuleList(LSTMP(dim, config.lstm) for _ in range(config.lstm.num_layers))
            for _ in range(2)
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
    ) -> tuple[list[Tensor], DirectionState]:
        """Run one direction's stack over token vectors in reading order.

        Returns the N layer outputs (B, T, D), skip connections added, and the new state.
        """
        stack = self.forward_layers if direction == "forward" else self.backward_layers
        outputs, hiddens, cells = [], [], []
        for index, (layer, hidden, cell) in enumerate(zip(stack, *state, strict=True)):
            layer_out, (hidden, cell) = layer(x, (hidden, cell), mask)
            # from the second layer on; the state stays without the skip connection
            x = x + layer_out if index > 0 and self.config.lstm.skip_connections else layer_out
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
            TypeError: if ``ids`` is no tensor of integers.
            ValueError: if the shape does not fit the model, padding comes before real tokens, or
                ``state`` has too few rows.
        """
        self.check_inputs(ids, state)
        mask = mask_of(ids)
        tokens = self.encode_tokens(ids.flatten(0, 1)).unflatten(0, tuple(mask.shape))
        return self.run_tokens(tokens * mask.unsqueeze(2), mask, state=state)

    def run_tokens(
        self,
        tokens: Float[Tensor, "B T D"],
        mask: Bool[Tensor, "B T"],
        *,
        state: BiLMState | None = None,
    ) -> BiLMOutput:
        """Run both stacks over the token layer's vectors, which are 0 at padded positions."""
        lengths = lengths_of(mask)
        if state is None:
            lstm, weight = self.config.lstm, self.forward_layers[0].get_parameter("input_weight")
            state = BiLMState.zeros(lstm, len(mask), device=weight.device, dtype=weight.dtype)
        state = state.rows(slice(0, len(mask)))
        forward, forward_state = self.run_direction(
            "forward", tokens, state=state.direction("forward"), mask=mask
        )
        # the backward stack reads each sentence from its own end, so padding stays last
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

    def check_inputs(self, ids: Any, state: BiLMState | None = None) -> None:
        """Check the ids (B, T, C), for a word-input model (B, T), and the rows of a state."""
        row = () if self.config.char_cnn is None else (self.char_vocab.row_length,)
        is_tensor = isinstance(ids, Tensor)
        is_integer = is_tensor and not ids.is_floating_point() and ids.dtype != torch.bool
        if not is_integer or ids.dim() != 2 + len(row) or ids.shape[2:] != row:
            name, shape = ("char_ids", f"B, T, {row[0]}") if row else ("word_ids", "B, T")
            got = f"{ids.dtype}, {tuple(ids.shape)}" if is_tensor else type(ids).__name__
            raise (ValueError if is_integer else TypeError)(
                f"`{name}` must be a tensor of integers of shape ({shape}), got {got}.\n"
                "model.encode(sentences) makes it."
            )
        if state is not None and state.num_rows < len(ids):
            raise ValueError(
                f"`state` has {state.num_rows} rows, fewer than the batch's {len(ids)}."
            )
