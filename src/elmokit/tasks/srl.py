"""Who does what to whom: the semantic roles around one predicate.

The network is He et al. 2017 as Peters et al. 2018 use it: [static vector; ELMo; predicate
feature], LSTM layers that alternate in direction with highway gates, one score a tag at each word;
decoded by a search among legal BIO sequences, without learned transitions. ELMo may also stand at
the output of the last LSTM layer, or only there (table 3 of the paper).
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.errors import InputError
from elmokit.files.location import Location, shown
from elmokit.metrics.span_f1 import read_spans
from elmokit.metrics.srl import score_roles
from elmokit.tasks.formats.propbank import PredicateRoles, read_propbank
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.networks.crf import viterbi
from elmokit.tasks.networks.highway_lstm import AlternatingHighwayLSTM, HighwayLSTMConfig
from elmokit.tasks.networks.tag_batches import cut_tags, gold_ids
from elmokit.tasks.tag_schemes import allowed_transitions
from elmokit.tasks.task import Labels, Sentence, Task, TaskModel, TaskScore, Tokenize
from elmokit.text.tokenizers.registry import Tokenizer

PREDICATE_DIM = 100
"""Width of the feature that tells the predicate from other words."""
DROPOUT = 0.1
_MARKED = re.compile(r"([^*]*)\*([^*]*)\*([^*]*)")


class RoleLabeler(TaskModel):
    """Word vectors and the predicate feature → alternating highway LSTM → one score a tag.

    Args:
        inputs: What is read at each word; with a mixture at the output if it has one.
        tags: BIO, in the order of their ids.
        hidden_dims: Widths of the layers: one number, as often as there are layers.
        dropout: Recurrent, the same at all words.

    Raises:
        ValueError: if the widths differ.
    """

    allowed: Tensor

    def __init__(
        self,
        inputs: TokenInputs,
        tags: Labels,
        hidden_dims: tuple[int, ...],
        *,
        dropout: float = DROPOUT,
    ) -> None:
        super().__init__()
        if len(set(hidden_dims)) != 1:
            raise ValueError(f"`hidden_dims` must be one width for all layers, got {hidden_dims}.")
        self.inputs, self.tags = inputs, tags
        self._ids = {tag: number for number, tag in enumerate(tags)}
        self.predicate = nn.Embedding(2, PREDICATE_DIM)
        config = HighwayLSTMConfig(
            num_layers=len(hidden_dims), hidden_dim=hidden_dims[0], dropout=dropout
        )
        self.encoder = AlternatingHighwayLSTM(inputs.output_dim + PREDICATE_DIM, config)
        self.to_tags = nn.Linear(self.encoder.output_dim + inputs.output_mix_dim, len(tags))
        allowed = torch.from_numpy(allowed_transitions(tags, "BIO"))
        self.register_buffer("allowed", allowed, persistent=False)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh weights."""
        self.inputs.reset_parameters(generator)
        self.encoder.reset_parameters(generator)
        nn.init.normal_(self.predicate.weight, generator=generator)
        nn.init.orthogonal_(self.to_tags.weight, generator=generator)
        nn.init.zeros_(self.to_tags.bias)

    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        """Return the mean over words, and the mixtures' penalty."""
        batch = batches[0]
        logits, gold = self._logits(batch, examples), gold_ids(examples, self._ids, batch.mask)
        loss = functional.cross_entropy(logits[batch.mask], gold[batch.mask])
        return loss + self.inputs.penalty()

    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[list[str]]:
        """Return the tags of each sentence: the best legal sequence."""
        mask = batches[0].mask
        best, _ = viterbi(self._logits(batches[0], examples), mask, allowed=self.allowed)
        return cut_tags(best, self.tags, mask)

    def _logits(self, batch: TokenBatch, examples: Sequence[Any]) -> Tensor:
        feature = torch.zeros(batch.mask.shape, dtype=torch.int64)
        for row, example in enumerate(examples):
            if example.tokens:
                feature[row, example.predicate] = 1
        x = torch.cat([self.inputs(batch), self.predicate(feature)], dim=2)
        return self.to_tags(self.inputs.join_output(self.encoder(x, batch.mask), batch))


class SrlTask(Task[PredicateRoles]):
    """Semantic roles, from JSON lines of sentences with their predicates."""

    name, metric = "srl", "F1"
    default_dropout = DROPOUT
    places = ("input", "output", "both")
    paper_inputs = InputSettings(characters=False)

    @property
    def default_hidden_dims(self) -> tuple[int, ...]:
        """Widths of the recurrent layers."""
        return (300,) * 8

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[PredicateRoles]:
        """Read examples with their gold."""
        return list(read_propbank(path))

    def sentences(self, example: PredicateRoles) -> tuple[Sentence, ...]:
        """Return the words that the biLM reads."""
        return (example.tokens,)

    def gold(self, example: PredicateRoles) -> list[str]:
        """Return the right answer."""
        return list(example.tags)

    def labels(self, examples: Sequence[PredicateRoles]) -> Labels:
        """Return the labels, in the order of their ids."""
        roles = {tag[2:] for example in examples for tag in example.tags if tag != "O"}
        return ["O", *(f"{prefix}-{role}" for role in sorted(roles) for prefix in "BI")]

    def build(
        self, inputs: TokenInputs, labels: Labels, hidden_dims: tuple[int, ...], dropout: float
    ) -> RoleLabeler:
        """Build the network."""
        return RoleLabeler(inputs, labels, hidden_dims, dropout=dropout)

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        """Compare predictions with gold."""
        report = score_roles(predicted, gold)
        overall = report.overall
        details = {"precision": overall.precision, "recall": overall.recall}
        return TaskScore(self.metric, overall.f1, details, report.counts)

    def example_of(self, *sentences: Sentence) -> PredicateRoles:
        """Make an example of the words before a predicate, the predicate, and the words after."""
        before, predicate, after = sentences
        tokens = (*before, *predicate, *after)
        location = Location(path=Path("text"), line=1)
        return PredicateRoles(
            tokens=tokens, predicate=len(before), tags=("O",) * len(tokens), location=location
        )

    def from_text(self, text: str, tokenizer: Tokenizer) -> PredicateRoles:
        """Make an example of a text whose predicate stands between asterisks.

        Raises:
            ValueError: if no word is marked, or there are other asterisks.
        """
        marked = _MARKED.fullmatch(text)
        parts = [tuple(tokenizer.tokenize(part)) for part in marked.groups()] if marked else []
        if not parts or not parts[1]:
            raise InputError(
                f"One predicate must be marked, got {shown(text)}. Put asterisks around it and "
                "nowhere else: The dog *bit* the man."
            )
        return self.example_of(*parts)

    def show(self, example: PredicateRoles, prediction: list[str]) -> str:
        """Return the answer as a person reads it."""
        words = list(example.tokens)
        for role, start, end in read_spans(prediction):
            words[start] = f"[{role} {words[start]}"
            words[end - 1] = f"{words[end - 1]}]"
        return " ".join(words)

    def as_json(self, example: PredicateRoles, prediction: list[str]) -> dict[str, Any]:
        """Return the answer for machines."""
        roles = [
            {"role": role, "start": start, "end": end, "text": " ".join(example.tokens[start:end])}
            for role, start, end in read_spans(prediction)
        ]
        return {"tokens": list(example.tokens), "predicate": example.predicate, "roles": roles}
