"""One label for a whole text: sentiment, in the manner of BCN.

The network is the biattentive classifier that Peters et al. 2018, appendix A.8 use, without its
second sentence: [static vector; ELMo] → linear → biLSTM → attention of the text to itself →
integrating biLSTM → pools (maximum, mean, self-attentive) → two layers. ELMo stands at the input
and at the output of the first biLSTM.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.bilm.masking import masked_max, masked_mean
from elmokit.files.location import Location
from elmokit.tasks.formats.records import first_named, read_records
from elmokit.tasks.formats.text_labels import LabeledText, read_sentiment_trees, read_text_labels
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.label_task import LabelModel, LabelTask
from elmokit.tasks.networks.attention import SelfAttentivePooling, attend
from elmokit.tasks.networks.encoder import (
    SentenceEncoder,
    SentenceEncoderConfig,
    VariationalDropout,
)
from elmokit.tasks.task import Labels, Sentence, Tokenize, one_width

DROPOUT = 0.25
TEXT_FIELDS, LABEL_FIELDS = ("text", "document", "sentence", "Text"), ("label", "Label")
"""Names of the columns, the first that is there."""
MIN_PHRASE_TOKENS = 4
"""Of trees, phrases of at least so many words are trained on, as in the paper."""


class TextClassifier(LabelModel):
    """Word vectors → biLSTM → self-attention → biLSTM → pools → label.

    Args:
        inputs: What is read at each word; with a mixture at the output if it has one.
        labels: In the order of their ids.
        hidden_dims: Width of the linear layer and of both biLSTMs, one direction: one number.
        dropout: Of the inputs (variational), of the pools and of the last layer.
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
        """Draw fresh weights."""
        self.inputs.reset_parameters(generator)
        for encoder in (self.encoder, self.integrator):
            encoder.reset_parameters(generator)
        self.pool.reset_parameters(generator)
        for linear in (self.to_width, self.hidden, self.to_labels):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            nn.init.zeros_(linear.bias)

    def logits(self, *batches: TokenBatch) -> Tensor:
        """Return a score for each text and label."""
        (batch,) = batches
        mask = batch.mask
        x = self.input_dropout(self.inputs(batch))
        x = self.dropout(torch.relu(self.to_width(x)))
        x = self.inputs.join_output(self.encoder(x, mask), batch)
        # every word of the text with all others, itself among them
        attended = attend(x @ x.transpose(1, 2) / x.shape[2] ** 0.5, x, mask)
        x = self.integrator(torch.cat([x, x - attended, x * attended], dim=2), mask)
        pooled = torch.cat([masked_max(x, mask), masked_mean(x, mask), self.pool(x, mask)], dim=1)
        return self.to_labels(self.dropout(torch.relu(self.hidden(self.dropout(pooled)))))


class SentimentTask(LabelTask[LabeledText]):
    """Sentiment of a text: SST trees (``.txt``), or records of a text and its label."""

    name = "sentiment"
    default_dropout = DROPOUT
    places = ("input", "output", "both")
    paper_inputs = InputSettings(places="both", characters=False)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[LabeledText]:
        """Read examples with their gold."""
        if ".txt" in path.suffixes:
            phrases = MIN_PHRASE_TOKENS if training else None
            return list(read_sentiment_trees(path, min_phrase_tokens=phrases))
        text, label = (
            first_named(read_records(path), names) for names in (TEXT_FIELDS, LABEL_FIELDS)
        )
        return [
            replace(example, tokens=tuple(tokenize(example.text)))
            for example in read_text_labels(path, text=text, label=label)
        ]

    def sentences(self, example: LabeledText) -> tuple[Sentence, ...]:
        """Return the words that the biLM reads."""
        assert example.tokens is not None
        return (example.tokens,)

    def build(
        self, inputs: TokenInputs, labels: Labels, hidden_dims: tuple[int, ...], dropout: float
    ) -> TextClassifier:
        """Build the network."""
        return TextClassifier(inputs, labels, hidden_dims, dropout=dropout)

    def example_of(self, *sentences: Sentence) -> LabeledText:
        """Make an example of new words."""
        (tokens,) = sentences
        location = Location(path=Path("text"), line=1)
        return LabeledText(text=" ".join(tokens), label="", tokens=tokens, location=location)

    def as_given(self, example: LabeledText, texts: Sequence[str]) -> LabeledText:
        """Return an example of a raw text."""
        return replace(example, text=texts[0])

    def show(self, example: LabeledText, prediction: str) -> str:
        """Return the answer as a person reads it."""
        return f"{prediction}\t{example.text}"

    def as_json(self, example: LabeledText, prediction: str) -> dict[str, Any]:
        """Return the answer for machines."""
        return {"text": example.text, "label": prediction}
