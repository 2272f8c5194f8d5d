"""The network of semantic role labeling: a deep highway LSTM and a search among legal tags.

[static vector; ELMo; predicate feature] → alternating highway LSTM → one score per tag → search
among legal BIO sequences, without learned transitions. ELMo may also be read at the output of the
last LSTM layer, or only there (table 3 of the paper).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.networks.crf import viterbi
from elmokit.tasks.networks.highway_lstm import AlternatingHighwayLSTM, HighwayLSTMConfig
from elmokit.tasks.networks.initialization import draw_weights
from elmokit.tasks.networks.marginals import Marginals, span_probs
from elmokit.tasks.networks.tagger import TagModel
from elmokit.tasks.tag_schemes import allowed_transitions
from elmokit.tasks.task import Labels, Widths

PREDICATE_DIM = 100
"""Width of the feature that marks the predicate."""
DROPOUT = 0.1


class RoleLabeler(TagModel):
    """Word vectors and the predicate feature → alternating highway LSTM → one score per tag.

    The tags are BIO. All layers have one width. The dropout is recurrent, the same at all words.

    Source: He et al. 2017; Peters et al. 2018.
    """

    allowed: Tensor

    def __init__(
        self, inputs: TokenInputs, labels: Labels, hidden_dims: Widths, *, dropout: float = DROPOUT
    ) -> None:
        super().__init__(inputs, labels)
        if len(set(hidden_dims)) != 1:
            raise ValueError(
                f"`hidden_dims` must be one width for all layers, got {list(hidden_dims)}."
            )
        self.predicate = nn.Embedding(2, PREDICATE_DIM)
        config = HighwayLSTMConfig(
            num_layers=len(hidden_dims), hidden_dim=hidden_dims[0], dropout=dropout
        )
        self.encoder = AlternatingHighwayLSTM(inputs.output_dim + PREDICATE_DIM, config)
        self.to_tags = nn.Linear(self.encoder.output_dim + inputs.output_mix_dim, len(labels))
        allowed = torch.from_numpy(allowed_transitions(labels, "iob2"))
        self.register_buffer("allowed", allowed, persistent=False)

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_weights((self.inputs, self.encoder), generator)
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

    def decode(self, logits: Tensor, mask: Tensor) -> Tensor:
        return viterbi(logits, mask, allowed=self.allowed)[0]

    def probs(self, logits: Tensor, tags: Sequence[str]) -> list[float]:
        """Return the probability of each span among legal tag sequences."""
        return span_probs(Marginals(logits, allowed=self.allowed), tags, self._ids)
