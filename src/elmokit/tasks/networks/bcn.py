"""The network of sentiment: the biattentive classifier (BCN) for one text.

[static vector; ELMo] → linear → biLSTM → attention of the text to itself → integrating biLSTM →
pools (maximum, mean, self-attentive) → two layers. ELMo is read at the input and at the output of
the first biLSTM.
"""

import torch
from torch import Tensor, nn

from elmokit.bilm.masking import masked_max, masked_mean
from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.networks.attention import SelfAttentivePooling, attend
from elmokit.tasks.networks.classifier import Classifier
from elmokit.tasks.networks.encoder import (
    SentenceEncoder,
    SentenceEncoderConfig,
    VariationalDropout,
    single_width,
)
from elmokit.tasks.networks.initialization import draw_weights
from elmokit.tasks.task import Labels, Widths

DROPOUT = 0.25


class BCN(Classifier):
    """Word vectors → biLSTM → self-attention → biLSTM → pools → label.

    The linear layer and both biLSTMs have one width. Dropout acts on the inputs (variational), the
    pools and the last layer.

    Source: McCann et al. 2017 without its second sentence; Peters et al. 2018, appendix A.8.
    """

    def __init__(
        self, inputs: TokenInputs, labels: Labels, hidden_dims: Widths, *, dropout: float = DROPOUT
    ) -> None:
        super().__init__(inputs, labels)
        width = single_width(hidden_dims)
        self.to_width = nn.Linear(inputs.output_dim, width)
        config = SentenceEncoderConfig(hidden_dims=(width,))
        self.encoder = SentenceEncoder(width, config)
        encoded = self.encoder.output_dim + inputs.output_mix_dim
        self.integrator = SentenceEncoder(3 * encoded, config)
        self.pool = SelfAttentivePooling(self.integrator.output_dim)
        self.dropout = nn.Dropout(dropout)
        self.input_dropout = VariationalDropout(dropout)
        self.hidden = nn.Linear(3 * self.integrator.output_dim, width)
        self.to_labels = nn.Linear(width, len(labels))

    def reset_parameters(self, generator: torch.Generator) -> None:
        parts = (
            self.inputs, self.encoder, self.integrator, self.pool,
            self.to_width, self.hidden, self.to_labels,
        )  # fmt: skip
        draw_weights(parts, generator)

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
