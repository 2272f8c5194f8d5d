"""The network that finds answers in a paragraph: BiDAF with self-attention (DocQA)."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.shapes import Bool, Float, Int
from elmokit.tasks.inputs.token_inputs import TokenBatch
from elmokit.tasks.networks.attention import BiDAFAttention, SelfAttention
from elmokit.tasks.networks.encoder import (
    SentenceEncoder,
    TaskModel,
    VariationalDropout,
    single_width,
)
from elmokit.tasks.qa import FoundAnswer
from elmokit.tasks.task import Answer, Widths, no_probs

MAX_ANSWER_WORDS = 17  # of a predicted answer


class SpanQA(TaskModel):
    """Question and context → biGRUs with attention → first and last word of the answer.

    All biGRUs have one width, linear layers twice that.
    Source: Clark and Gardner 2018; Peters et al. 2018, appendix A.4; but other fresh weights.
    """

    drawn = (
        "inputs", "encoder", "self_encoder", "start_encoder", "end_encoder", "attention",
        "self_attention", "to_width", "from_self", "to_start", "to_end",
    )  # fmt: skip

    def build(self, hidden_dims: Widths, dropout: float) -> None:
        width = 2 * single_width(hidden_dims)

        def encoder(input_dim: int) -> SentenceEncoder:
            return SentenceEncoder(input_dim, hidden_dims, cell="gru", dropout=dropout)

        self.encoder = encoder(self.inputs.output_dim)
        encoded = width + self.inputs.output_mix_dim
        self.attention = BiDAFAttention(encoded)
        self.to_width = nn.Linear(4 * encoded, width)
        self.self_encoder = encoder(width)
        self.self_attention = SelfAttention(width)
        self.from_self = nn.Linear(3 * width, width)
        self.start_encoder = encoder(width)
        self.to_start = nn.Linear(width, 1)
        self.end_encoder = encoder(2 * width)
        self.to_end = nn.Linear(width, 1)
        self.dropout = VariationalDropout(dropout)

    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        """Return the mean of -log p(first word) - log p(last word), plus the mixtures' penalty."""
        start_log_probs, end_log_probs = self._log_probs(*batches)
        spans = [example.spans[0] for example in examples]
        starts, ends = torch.tensor(spans, device=start_log_probs.device).unbind(dim=1)
        loss = functional.nll_loss(start_log_probs, starts)
        return loss + functional.nll_loss(end_log_probs, ends - 1) + self.inputs.penalty()

    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[Answer]:
        log_probs = self._log_probs(*batches)
        start, end, score = best_answers(*log_probs, batches[1].mask)
        answers = []
        columns = examples, start.tolist(), end.tolist(), score.exp().tolist()
        for example, first, last, prob in zip(*columns, strict=True):
            if first == last:
                answers.append(FoundAnswer("", 0, 0, 0.0))
                continue
            a, b = example.offsets[first][0], example.offsets[last - 1][1]
            answers.append(FoundAnswer(example.context[a:b], a, b, prob))
        return [(answer, no_probs) for answer in answers]

    def _log_probs(self, question: TokenBatch, context: TokenBatch) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities of context words as the first and as the last: (B, N)."""
        mask = context.mask
        x = self.attention(self._encode(context), self._encode(question), mask, question.mask)
        x = torch.relu(self.to_width(x))  # (B, N, 2H)
        attended = self.self_attention(self.dropout(self.self_encoder(x, mask)), mask)
        x = x + torch.relu(self.from_self(attended))
        first = self.start_encoder(x, mask)
        last = self.end_encoder(torch.cat([first, x], dim=2), mask)
        return (
            _log_softmax(self.to_start(self.dropout(first)), mask),
            _log_softmax(self.to_end(self.dropout(last)), mask),
        )

    def _encode(self, batch: TokenBatch) -> Tensor:
        encoded = self.dropout(self.encoder(self.inputs(batch), batch.mask))
        return self.inputs.join_output(encoded, batch)


def best_answers(
    start_log_probs: Float[Tensor, "B N"],
    end_log_probs: Float[Tensor, "B N"],
    mask: Bool[Tensor, "B N"],
    *,
    max_length: int = MAX_ANSWER_WORDS,
) -> tuple[Int[Tensor, " B"], Int[Tensor, " B"], Float[Tensor, " B"]]:
    """Find the span in each row whose first and last positions have the highest summed score.

    Spans have at most ``max_length`` positions; of equal ones the earliest wins, then the shortest.
    Returns start, end (exclusive) and score of each row; 0, 0 and -inf where no span is possible.
    """
    num_rows, length = mask.shape
    if length == 0:
        nowhere = mask.new_zeros(num_rows, dtype=torch.long)
        return nowhere, nowhere, start_log_probs.new_full((num_rows,), -torch.inf)
    first = start_log_probs.masked_fill(~mask, -torch.inf)
    last = end_log_probs.masked_fill(~mask, -torch.inf)
    last = functional.pad(last, (0, max_length - 1), value=-torch.inf)
    # Windows of ends from each start on: spans that are too long or backwards never arise.
    pairs = first.unsqueeze(2) + last.unfold(1, max_length, 1)  # (B, N, max_length)
    score, index = pairs.flatten(1).max(dim=1)
    start = index // max_length
    end = start + index % max_length + 1
    nowhere = score == -torch.inf
    return start.masked_fill(nowhere, 0), end.masked_fill(nowhere, 0), score


def _log_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """(B, N, 1) -> (B, N)."""
    logits = logits.squeeze(2)
    return logits.masked_fill(~mask, torch.finfo(logits.dtype).min).log_softmax(dim=1)
