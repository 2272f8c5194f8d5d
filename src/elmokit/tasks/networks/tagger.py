"""Networks that score tags at each word: a biLSTM with a softmax or a CRF on top.

Source: Peters et al. 2018, appendix A.7: [static vector; character CNN; ELMo] → biLSTM → linear
layer; spans are tagged BIOUL, scored by a CRF and decoded among legal sequences only.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.networks.crf import (
    CRF,
    Marginals,
    allowed_transitions,
    span_probs,
    viterbi,
)
from elmokit.tasks.networks.encoder import SentenceEncoder, VariationalDropout, draw_weights
from elmokit.tasks.task import Labels, TaskModel, Widths


class TagModel(TaskModel):
    """A network that scores tags: logits (B, W, Y). By default each word has its own softmax."""

    @abstractmethod
    def logits(self, batch: TokenBatch, examples: Sequence[Any]) -> Tensor:
        """Return the scores of tags: (B, W, Y)."""

    def tag_loss(self, logits: Tensor, gold: Tensor, mask: Tensor) -> Tensor:
        """Return the mean over words; gold and mask are (B, W)."""
        return functional.cross_entropy(logits[mask], gold[mask])

    @abstractmethod
    def decode(self, logits: Tensor, mask: Tensor) -> Tensor:
        """Return the ids of the best tags: (B, W)."""

    def probs(self, logits: Tensor, tags: Sequence[str]) -> list[float]:
        """Return the probabilities of a sentence's tags (softmax), or of its spans."""
        ids = [self._ids[tag] for tag in tags]
        return logits.double().softmax(dim=1)[range(len(ids)), ids].tolist()

    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        mask = batches[0].mask
        logits = self.logits(batches[0], examples)
        # 0 at padded positions and for unknown tags
        rows = [[self._ids.get(tag, 0) for tag in example.tags] for example in examples]
        padded = [row + [0] * (mask.shape[1] - len(row)) for row in rows]
        gold = torch.tensor(padded, dtype=torch.int64, device=mask.device)
        return self.tag_loss(logits, gold, mask) + self.inputs.penalty()

    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[list[str]]:
        return self._best(self.logits(batches[0], examples), batches[0].mask)

    def predict_with_probs(
        self, batches: Sequence[TokenBatch], examples: Sequence[Any]
    ) -> list[tuple[list[str], list[float]]]:
        """Return the tags of each example, each with what `probs` returns."""
        logits = self.logits(batches[0], examples)
        pairs = zip(self._best(logits, batches[0].mask), logits, strict=True)
        return [(tags, self.probs(row[: len(tags)], tags)) for tags, row in pairs]

    def _best(self, logits: Tensor, mask: Tensor) -> list[list[str]]:
        rows = zip(self.decode(logits, mask).tolist(), mask.sum(dim=1).tolist(), strict=True)
        return [[self.labels[tag] for tag in ids[:length]] for ids, length in rows]


class Tagger(TagModel):
    """Word vectors → biLSTM → one score per tag → softmax at each word.

    Variational dropout acts on the encoder's inputs and outputs.
    """

    def __init__(
        self, inputs: TokenInputs, labels: Labels, hidden_dims: Widths, *, dropout: float
    ) -> None:
        super().__init__(inputs, labels)
        self.encoder = SentenceEncoder(inputs.output_dim, hidden_dims, dropout=dropout)
        self.dropout = VariationalDropout(dropout)
        self.to_tags = nn.Linear(self.encoder.output_dim, len(labels))

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_weights((self.inputs, self.encoder, self.to_tags), generator)

    def logits(self, batch: TokenBatch, examples: Sequence[Any]) -> Tensor:
        encoded = self.encoder(self.inputs(batch), batch.mask)
        return self.to_tags(self.dropout(encoded))

    def decode(self, logits: Tensor, mask: Tensor) -> Tensor:
        return logits.argmax(dim=2)


class CRFTagger(Tagger):
    """`Tagger` with a CRF over BIOUL tags; the loss is the mean over sentences."""

    def __init__(
        self, inputs: TokenInputs, labels: Labels, hidden_dims: Widths, *, dropout: float
    ) -> None:
        super().__init__(inputs, labels, hidden_dims, dropout=dropout)
        self.crf = CRF(allowed_transitions(labels, "bioul"))

    def reset_parameters(self, generator: torch.Generator) -> None:
        super().reset_parameters(generator)
        self.crf.reset_parameters(generator)

    def tag_loss(self, logits: Tensor, gold: Tensor, mask: Tensor) -> Tensor:
        return -self.crf(logits, gold, mask).mean()

    def decode(self, logits: Tensor, mask: Tensor) -> Tensor:
        return viterbi(logits, mask, transitions=self.crf.transitions, allowed=self.crf.allowed)[0]

    def probs(self, logits: Tensor, tags: Sequence[str]) -> list[float]:
        """Return the CRF's probability of each span, among legal tag sequences."""
        marginals = Marginals(logits, transitions=self.crf.transitions, allowed=self.crf.allowed)
        return span_probs(marginals, tags, self._ids)
