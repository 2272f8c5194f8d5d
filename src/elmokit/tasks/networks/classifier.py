"""Networks that give an example one label: BCN for one text, ESIM for two."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.masking import masked_max, masked_mean
from elmokit.tasks.frozen_classifier import label_answers
from elmokit.tasks.inputs.token_inputs import TokenBatch
from elmokit.tasks.networks.attention import SelfAttentivePooling, attend, soft_align
from elmokit.tasks.networks.encoder import (
    SentenceEncoder,
    TaskModel,
    VariationalDropout,
    single_width,
)
from elmokit.tasks.task import Answer, Widths


class Classifier(TaskModel):
    @abstractmethod
    def logits(self, *batches: TokenBatch) -> Tensor:
        """Return the scores of labels: (B, Y)."""

    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        logits = self.logits(*batches)
        ids = [self._ids[example.label] for example in examples]
        gold = torch.tensor(ids, device=logits.device)
        return functional.cross_entropy(logits, gold) + self.inputs.penalty()

    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[Answer]:
        logits = self.logits(*batches)
        return label_answers(self.labels, logits, logits.double().softmax(dim=1))


class BCN(Classifier):
    """The biattentive classifier: word vectors → biLSTM → self-attention → biLSTM → pools → label.

    The linear layer and both biLSTMs have one width. Dropout acts on the inputs (variational), the
    pools and the last layer.

    Source: McCann et al. 2017 without its second sentence; Peters et al. 2018, appendix A.8.
    """

    drawn = ("inputs", "encoder", "integrator", "pool", "to_width", "hidden", "to_labels")

    def build(self, hidden_dims: Widths, dropout: float) -> None:
        width = single_width(hidden_dims)
        self.to_width = nn.Linear(self.inputs.output_dim, width)
        self.encoder = SentenceEncoder(width, (width,))
        encoded = self.encoder.output_dim + self.inputs.output_mix_dim
        self.integrator = SentenceEncoder(3 * encoded, (width,))
        self.pool = SelfAttentivePooling(self.integrator.output_dim)
        self.dropout = nn.Dropout(dropout)
        self.input_dropout = VariationalDropout(dropout)
        self.hidden = nn.Linear(3 * self.integrator.output_dim, width)
        self.to_labels = nn.Linear(width, len(self.labels))

    def logits(self, *batches: TokenBatch) -> Tensor:
        (batch,) = batches
        mask = batch.mask
        x = self.input_dropout(self.inputs(batch))
        x = self.dropout(torch.relu(self.to_width(x)))
        x = self.inputs.join_output(self.encoder(x, mask), batch)
        attended = attend(x @ x.transpose(1, 2) / x.shape[2] ** 0.5, x, mask)  # to itself, too
        x = self.integrator(torch.cat([x, x - attended, x * attended], dim=2), mask)
        pooled = torch.cat([masked_max(x, mask), masked_mean(x, mask), self.pool(x, mask)], dim=1)
        return self.to_labels(self.dropout(torch.relu(self.hidden(self.dropout(pooled)))))


class ESIM(Classifier):
    """Two texts → biLSTM → soft alignment → difference and product → biLSTM → pools → label.

    Both biLSTMs and the layers have one width. Dropout acts on the encoders' inputs and the output
    mixture (variational), and before the last two layers.

    Source: Chen et al. 2017; Peters et al. 2018, appendix A.3.
    """

    drawn = ("inputs", "encoder", "composer", "project", "hidden", "to_labels")

    def build(self, hidden_dims: Widths, dropout: float) -> None:
        width = single_width(hidden_dims)
        self.encoder = SentenceEncoder(self.inputs.output_dim, (width,), dropout=dropout)
        encoded = self.encoder.output_dim + self.inputs.output_mix_dim
        self.project = nn.Linear(4 * encoded, width)
        self.composer = SentenceEncoder(width, (width,), dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.hidden = nn.Linear(4 * self.composer.output_dim, width)
        self.to_labels = nn.Linear(width, len(self.labels))

    def logits(self, *batches: TokenBatch) -> Tensor:
        first, second = batches
        a, b = self._encode(first), self._encode(second)
        from_b, from_a = soft_align(a, b, first.mask, second.mask)
        pooled = [*self._compose(a, from_b, first.mask), *self._compose(b, from_a, second.mask)]
        x = torch.relu(self.hidden(self.dropout(torch.cat(pooled, dim=1))))
        return self.to_labels(self.dropout(x))

    def _encode(self, batch: TokenBatch) -> Tensor:
        # The output mixture gets the dropout of the inputs.
        joined = self.inputs.join_output(self.encoder(self.inputs(batch), batch.mask), batch)
        encoded, mixture = joined.tensor_split([self.encoder.output_dim], dim=2)
        return torch.cat([encoded, self.encoder.dropout(mixture)], dim=2)

    def _compose(self, x: Tensor, aligned: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        both = torch.cat([x, aligned, x - aligned, x * aligned], dim=2)
        composed = self.composer(torch.relu(self.project(both)), mask)
        return masked_mean(composed, mask), masked_max(composed, mask)
