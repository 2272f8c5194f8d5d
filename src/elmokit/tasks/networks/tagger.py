"""Networks that score tags at each word: of a biLSTM or, for semantic roles, of a highway LSTM.

Source: Peters et al. 2018, appendix A.7 (CRF tagger); He et al. 2017 (semantic roles).
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.masking import lengths_of, reverse_sequences
from elmokit.metrics.task_scores import TagScheme
from elmokit.shapes import Bool, Float, Int
from elmokit.tasks.inputs.token_inputs import TokenBatch
from elmokit.tasks.networks.encoder import (
    FORGET_BIAS,
    PaddedEncoder,
    SentenceEncoder,
    TaskModel,
    VariationalDropout,
    single_width,
)
from elmokit.tasks.tag_search import TagSearch
from elmokit.tasks.task import Answer, Widths

PREDICATE_DIM = 100  # width of the feature that marks the predicate
FRESH_STD = 0.1  # standard deviation of fresh transition scores of a CRF


class TagModel(TaskModel):
    """A network that scores tags: by a softmax at each word, or with a ``scheme`` tags of spans."""

    scheme: ClassVar[TagScheme | None] = None

    def build(self, hidden_dims: Widths, dropout: float) -> None:
        self._search = TagSearch(self.labels, self.scheme)

    @property
    def transitions(self) -> Tensor | None:
        """Learned scores of tags right after each other, if any: (Y, Y)."""
        return None

    @abstractmethod
    def logits(self, batch: TokenBatch, examples: Sequence[Any]) -> Tensor:
        """Return the scores of tags: (B, W, Y)."""

    def tag_loss(self, logits: Tensor, gold: Tensor, mask: Tensor) -> Tensor:
        """Return the mean over words; gold and mask are (B, W)."""
        return functional.cross_entropy(logits[mask], gold[mask])

    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        mask = batches[0].mask
        logits = self.logits(batches[0], examples)
        gold = torch.zeros_like(mask, dtype=torch.int64)  # 0 also stands for unknown tags
        for row, example in zip(gold, examples, strict=True):
            ids = [self._ids.get(tag, 0) for tag in example.tags]
            row[: len(ids)] = torch.tensor(ids, device=row.device)
        return self.tag_loss(logits, gold, mask) + self.inputs.penalty()

    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[Answer]:
        logits = self.logits(batches[0], examples).detach().cpu().numpy()
        rows = zip(logits, batches[0].mask.sum(dim=1).tolist(), strict=True)
        learned = self.transitions
        transitions = None if learned is None else learned.detach().cpu().numpy()
        return [self._search.answer(row[:length], transitions) for row, length in rows]


class Tagger(TagModel):
    """Word vectors → biLSTM with variational dropout → one score per tag → softmax at each word."""

    drawn = ("inputs", "encoder", "to_tags")

    def build(self, hidden_dims: Widths, dropout: float) -> None:
        super().build(hidden_dims, dropout)
        self.encoder = SentenceEncoder(self.inputs.output_dim, hidden_dims, dropout=dropout)
        self.dropout = VariationalDropout(dropout)
        self.to_tags = nn.Linear(self.encoder.output_dim, len(self.labels))

    def logits(self, batch: TokenBatch, examples: Sequence[Any]) -> Tensor:
        encoded = self.encoder(self.inputs(batch), batch.mask)
        return self.to_tags(self.dropout(encoded))


class CRF(nn.Module):
    """Linear-chain conditional random field over tag sequences, without constraints.

    The score of tags y_1 … y_n is ``sum_t logits[t, y_t] + sum_t transitions[y_t, y_t+1]``; its
    probability is ``exp(score)``, normalized over all sequences of that length.

    Source: Lafferty et al. 2001; Lample et al. 2016, section 2.2.
    """

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags))

    def reset_parameters(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.transitions, std=FRESH_STD, generator=generator)

    def forward(
        self, logits: Float[Tensor, "B T Y"], tags: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, " B"]:
        """Return the log-probability of each row's tags, in nats; 0 for an empty row."""
        lengths, transitions = lengths_of(mask), self.transitions.to(logits.dtype)
        if logits.shape[1] == 0:
            return logits.new_zeros(logits.shape[0])
        logits, tags = logits.masked_fill(~mask.unsqueeze(2), 0), tags.masked_fill(~mask, 0)
        # The score of ``tags`` is subtracted step by step: the running sums stay small as long as
        # ``tags`` are likely, so long sequences lose no digits.
        moves = transitions[tags[:, :-1], tags[:, 1:]]  # (B, T - 1)
        gold = logits.gather(2, tags.unsqueeze(2)) + functional.pad(moves, (1, 0)).unsqueeze(2)
        total, *steps = (logits - gold).unbind(dim=1)  # T of (B, Y)
        keep = mask.unsqueeze(2).unbind(dim=1)  # T of (B, 1)
        for step, here in zip(steps, keep[1:], strict=True):
            moved = torch.logsumexp(total.unsqueeze(2) + transitions, dim=1) + step
            total = torch.where(here, moved, total)
        log_odds = torch.logsumexp(total, dim=1)
        return -log_odds.masked_fill(lengths == 0, 0)


class CRFTagger(Tagger):
    """`Tagger` with a CRF over BIOUL tags; the loss is the mean over sentences."""

    scheme = "bioul"
    drawn = ("inputs", "encoder", "to_tags", "crf")

    def build(self, hidden_dims: Widths, dropout: float) -> None:
        super().build(hidden_dims, dropout)
        self.crf = CRF(len(self.labels))

    @property
    def transitions(self) -> Tensor:
        return self.crf.transitions

    def tag_loss(self, logits: Tensor, gold: Tensor, mask: Tensor) -> Tensor:
        return -self.crf(logits, gold, mask).mean()


class HighwayLSTMLayer(nn.Module):
    """One LSTM layer with a highway around it, read in one direction.

    With input x_t, output h and cell c, at each position
    ``i, f, o, r, g = W x_t + U h + b`` (blocks of H in this order),
    ``c = sigmoid(f) * c + sigmoid(i) * tanh(g)``,
    ``h = mask * (sigmoid(r) * sigmoid(o) * tanh(c) + (1 - sigmoid(r)) * V x_t)``
    where ``mask`` is the dropout mask, one for all positions.

    Shape: x (B, T, input_dim) -> (B, T, H).
    Source: He et al. 2017 (Deep Semantic Role Labeling), section 2.
    """

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.hidden_dim = hidden_dim
        self.input_weight = nn.Parameter(torch.zeros(5 * hidden_dim, input_dim))
        self.recurrent_weight = nn.Parameter(torch.zeros(5 * hidden_dim, hidden_dim))
        self.bias = nn.Parameter(torch.zeros(5 * hidden_dim))
        self.carry_weight = nn.Parameter(torch.zeros(hidden_dim, input_dim))

    def reset_parameters(self, generator: torch.Generator) -> None:
        for weight in (self.input_weight, self.recurrent_weight, self.carry_weight):
            for block in weight.detach().split(self.hidden_dim):
                nn.init.orthogonal_(block, generator=generator)
        nn.init.zeros_(self.bias)
        nn.init.constant_(self.bias.detach()[self.hidden_dim : 2 * self.hidden_dim], FORGET_BIAS)

    def forward(
        self, x: Float[Tensor, "B T X"], mask: Float[Tensor, "B H"] | None = None
    ) -> Float[Tensor, "B T H"]:
        hidden_dim = self.hidden_dim
        # What does not depend on the state before is computed for all positions at once.
        gates_in = functional.linear(x, self.input_weight, self.bias).unbind(dim=1)  # T of (B, 5H)
        carried = functional.linear(x, self.carry_weight).unbind(dim=1)  # T of (B, H)
        recurrent = self.recurrent_weight.t()
        hidden = cell = x.new_zeros(x.shape[0], hidden_dim)
        outputs = []
        for gate_in, carry in zip(gates_in, carried, strict=True):
            gates = torch.addmm(gate_in, hidden, recurrent)  # (B, 5H)
            i, f, o, r = torch.sigmoid(gates[:, : 4 * hidden_dim]).chunk(4, dim=1)
            cell = f * cell + i * torch.tanh(gates[:, 4 * hidden_dim :])
            hidden = r * (o * torch.tanh(cell)) + (1 - r) * carry
            if mask is not None:
                hidden = hidden * mask
            outputs.append(hidden)
        return torch.stack(outputs, dim=1)


class AlternatingHighwayLSTM(PaddedEncoder):
    """Highway LSTM layers of one width, each reading the one below in the other direction.

    Source: He et al. 2017, section 2; Zhou and Xu 2015 for the alternation.
    """

    def __init__(self, input_dim: int, hidden_dims: Sequence[int], *, dropout: float) -> None:
        super().__init__()
        self.dropout, self.output_dim = dropout, single_width(hidden_dims)
        self.layers = nn.ModuleList()
        for hidden_dim in hidden_dims:
            self.layers.append(HighwayLSTMLayer(input_dim, hidden_dim))
            input_dim = hidden_dim

    def read(self, x: Tensor, lengths: Tensor) -> Tensor:
        for index, layer in enumerate(self.layers):
            # Padding comes last in either order, so it affects no real position.
            if index > 0:
                x = reverse_sequences(x, lengths)
            mask = None
            if self.training and self.dropout > 0:
                mask = functional.dropout(x.new_ones(x.shape[0], self.output_dim), self.dropout)
            x = layer(x, mask)
        return reverse_sequences(x, lengths) if len(self.layers) % 2 == 0 else x


class RoleLabeler(TagModel):
    """Word vectors and the predicate feature → alternating highway LSTM → scores of BIO tags."""

    scheme = "iob2"
    drawn = ("inputs", "encoder")

    def build(self, hidden_dims: Widths, dropout: float) -> None:
        super().build(hidden_dims, dropout)
        self.predicate = nn.Embedding(2, PREDICATE_DIM)
        self.encoder = AlternatingHighwayLSTM(
            self.inputs.output_dim + PREDICATE_DIM, hidden_dims, dropout=dropout
        )
        encoded = self.encoder.output_dim + self.inputs.output_mix_dim
        self.to_tags = nn.Linear(encoded, len(self.labels))

    def reset_parameters(self, generator: torch.Generator) -> None:
        super().reset_parameters(generator)
        nn.init.normal_(self.predicate.weight, generator=generator)
        nn.init.orthogonal_(self.to_tags.weight, generator=generator)
        nn.init.zeros_(self.to_tags.bias)

    def logits(self, batch: TokenBatch, examples: Sequence[Any]) -> Tensor:
        feature = torch.zeros(batch.mask.shape, dtype=torch.int64, device=batch.mask.device)
        for row, example in enumerate(examples):
            if example.tokens:
                feature[row, example.predicate] = 1
        x = torch.cat([self.inputs(batch), self.predicate(feature)], dim=2)
        return self.to_tags(self.inputs.join_output(self.encoder(x, batch.mask), batch))
