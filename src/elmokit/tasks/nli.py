"""One label for two texts: entailment, by ESIM.

The network is Chen et al. 2017 in the form that Peters et al. 2018, appendix A.3 use: biLSTM over
both texts, soft alignment, the difference and product with what is aligned, a second biLSTM, pools,
two layers. ELMo stands at the input and at the output of the first biLSTM.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.bilm.masking import masked_max, masked_mean
from elmokit.tasks.formats.pairs import TextPair, read_pairs
from elmokit.tasks.formats.records import first_named, read_records
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.label_task import LabelModel, LabelTask
from elmokit.tasks.networks.attention import soft_align
from elmokit.tasks.networks.encoder import SentenceEncoder, SentenceEncoderConfig
from elmokit.tasks.task import Labels, Sentence, Tokenize, one_width

DROPOUT = 0.5
FIELDS = (
    ("premise", "sentence1", "text", "Text"),
    ("hypothesis", "sentence2", "Question"),
    ("label", "gold_label", "Label"),
)  # fmt: skip
"""Names of the columns, the first that is there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizedPair:
    """Two texts as words, and what holds between them."""

    first: Sentence
    second: Sentence
    label: str
    texts: tuple[str, str]
    """Both as they were given."""


class PairClassifier(LabelModel):
    """ESIM over two texts.

    Args:
        inputs: What is read at each word; with a mixture at the output if it has one.
        labels: In the order of their ids.
        hidden_dims: Width of both biLSTMs, one direction, and of the layers: one number.
        dropout: Of the encoders' inputs and the output mixture (variational), and before the last
            two layers.
    """

    def __init__(
        self,
        inputs: TokenInputs,
        labels: Labels,
        hidden_dims: tuple[int, ...],
        *,
        dropout: float = DROPOUT,
    ) -> None:
        super().__init__(inputs, labels)
        width = one_width(hidden_dims)
        config = SentenceEncoderConfig(hidden_dims=(width,), dropout=dropout)
        self.encoder = SentenceEncoder(inputs.output_dim, config)
        encoded = self.encoder.output_dim + inputs.output_mix_dim
        self.project = nn.Linear(4 * encoded, width)
        self.composer = SentenceEncoder(width, config)
        self.dropout = nn.Dropout(dropout)
        self.hidden = nn.Linear(4 * self.composer.output_dim, width)
        self.to_labels = nn.Linear(width, len(labels))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh weights."""
        self.inputs.reset_parameters(generator)
        for encoder in (self.encoder, self.composer):
            encoder.reset_parameters(generator)
        for linear in (self.project, self.hidden, self.to_labels):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            nn.init.zeros_(linear.bias)

    def logits(self, *batches: TokenBatch) -> Tensor:
        """Return a score for each pair and label."""
        first, second = batches
        a, b = self._encode(first), self._encode(second)
        from_b, from_a = soft_align(a, b, first.mask, second.mask)
        pooled = [
            *self._compose(a, from_b, first.mask),
            *self._compose(b, from_a, second.mask),
        ]
        x = torch.relu(self.hidden(self.dropout(torch.cat(pooled, dim=1))))
        return self.to_labels(self.dropout(x))

    def _encode(self, batch: TokenBatch) -> Tensor:
        """Return what was encoded beside the output mixture, dropped as the encoder's inputs are.

        So a mixture is dropped alike wherever it stands.
        """
        joined = self.inputs.join_output(self.encoder(self.inputs(batch), batch.mask), batch)
        encoded, mixture = joined.tensor_split([self.encoder.output_dim], dim=2)
        return torch.cat([encoded, self.encoder.dropout(mixture)], dim=2)

    def _compose(self, x: Tensor, aligned: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and maximum of one text read beside what is aligned with it."""
        both = torch.cat([x, aligned, x - aligned, x * aligned], dim=2)
        composed = self.composer(torch.relu(self.project(both)), mask)
        return masked_mean(composed, mask), masked_max(composed, mask)


class NliTask(LabelTask[TokenizedPair]):
    """Whether the first text entails the second: records of two texts and a label."""

    name, num_texts = "nli", 2
    default_dropout = DROPOUT
    places = ("input", "output", "both")
    # the paper normalizes the layers; which norm it does not say, and this one sees no batch
    paper_inputs = InputSettings(places="both", characters=False, dropout=0.0, layer_norm="token")

    @property
    def default_hidden_dims(self) -> tuple[int, ...]:
        """Widths of the recurrent layers, one direction."""
        return (300,)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[TokenizedPair]:
        """Read pairs with their gold."""
        first, second, label = (first_named(read_records(path), wanted) for wanted in FIELDS)
        pairs: list[TextPair] = list(
            read_pairs(path, first=first, second=second, label=label, labels=None)
        )
        return [
            TokenizedPair(
                first=tuple(tokenize(pair.first)),
                second=tuple(tokenize(pair.second)),
                label=pair.label,
                texts=(pair.first, pair.second),
            )
            for pair in pairs
        ]

    def sentences(self, example: TokenizedPair) -> tuple[Sentence, ...]:
        """Return the words that the biLM reads."""
        return (example.first, example.second)

    def build(
        self, inputs: TokenInputs, labels: Labels, hidden_dims: tuple[int, ...], dropout: float
    ) -> PairClassifier:
        """Build the network."""
        return PairClassifier(inputs, labels, hidden_dims, dropout=dropout)

    def example_of(self, *sentences: Sentence) -> TokenizedPair:
        """Make an example of new words."""
        first, second = sentences
        texts = " ".join(first), " ".join(second)
        return TokenizedPair(first=first, second=second, label="", texts=texts)

    def as_given(self, example: TokenizedPair, texts: Sequence[str]) -> TokenizedPair:
        """Return an example of two raw texts."""
        first, second = texts
        return replace(example, texts=(first, second))

    def show(self, example: TokenizedPair, prediction: str) -> str:
        """Return the answer as a person reads it."""
        return "\t".join((prediction, *example.texts))

    def as_json(self, example: TokenizedPair, prediction: str) -> dict[str, Any]:
        """Return the answer for machines."""
        first, second = example.texts
        return {"first": first, "second": second, "label": prediction}
