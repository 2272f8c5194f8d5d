"""The network of entailment: ESIM.

biLSTM over both texts → soft alignment → difference and product with the aligned text → second
biLSTM → pools → two layers. ELMo is read at the input and at the output of the first biLSTM.
"""

import torch
from torch import Tensor, nn

from elmokit.bilm.masking import masked_max, masked_mean
from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.networks.attention import soft_align
from elmokit.tasks.networks.classifier import Classifier
from elmokit.tasks.networks.encoder import SentenceEncoder, SentenceEncoderConfig, single_width
from elmokit.tasks.networks.initialization import draw_weights
from elmokit.tasks.task import Labels, Widths

DROPOUT = 0.5


class ESIM(Classifier):
    """Two texts → biLSTM → alignment → biLSTM → pools → label.

    Both biLSTMs and the layers have one width. Dropout acts on the encoders' inputs and the output
    mixture (variational), and before the last two layers.

    Source: Chen et al. 2017; Peters et al. 2018, appendix A.3.
    """

    def __init__(
        self, inputs: TokenInputs, labels: Labels, hidden_dims: Widths, *, dropout: float = DROPOUT
    ) -> None:
        super().__init__(inputs, labels)
        width = single_width(hidden_dims)
        config = SentenceEncoderConfig(hidden_dims=(width,), dropout=dropout)
        self.encoder = SentenceEncoder(inputs.output_dim, config)
        encoded = self.encoder.output_dim + inputs.output_mix_dim
        self.project = nn.Linear(4 * encoded, width)
        self.composer = SentenceEncoder(width, config)
        self.dropout = nn.Dropout(dropout)
        self.hidden = nn.Linear(4 * self.composer.output_dim, width)
        self.to_labels = nn.Linear(width, len(labels))

    def reset_parameters(self, generator: torch.Generator) -> None:
        parts = (
            self.inputs, self.encoder, self.composer, self.project, self.hidden, self.to_labels
        )  # fmt: skip
        draw_weights(parts, generator)

    def logits(self, *batches: TokenBatch) -> Tensor:
        first, second = batches
        a, b = self._encode(first), self._encode(second)
        from_b, from_a = soft_align(a, b, first.mask, second.mask)
        pooled = [*self._compose(a, from_b, first.mask), *self._compose(b, from_a, second.mask)]
        x = torch.relu(self.hidden(self.dropout(torch.cat(pooled, dim=1))))
        return self.to_labels(self.dropout(x))

    def _encode(self, batch: TokenBatch) -> Tensor:
        """Return [encoded; output mixture]; the mixture gets the dropout of the inputs."""
        joined = self.inputs.join_output(self.encoder(self.inputs(batch), batch.mask), batch)
        encoded, mixture = joined.tensor_split([self.encoder.output_dim], dim=2)
        return torch.cat([encoded, self.encoder.dropout(mixture)], dim=2)

    def _compose(self, x: Tensor, aligned: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and maximum of one text, read with what is aligned with it."""
        both = torch.cat([x, aligned, x - aligned, x * aligned], dim=2)
        composed = self.composer(torch.relu(self.project(both)), mask)
        return masked_mean(composed, mask), masked_max(composed, mask)
