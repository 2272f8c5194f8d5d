"""One label for each word: parts of speech, and named entities with a CRF.

The network is Peters et al. 2018, appendix A.7: [static vector; character CNN; ELMo], biLSTM,
linear layer; entities are tagged BIOUL inside, scored by a CRF and decoded among legal sequences
only.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.files.location import Location
from elmokit.metrics.accuracy import score_label_sequences
from elmokit.metrics.span_f1 import convert_tags, read_spans, score_tags
from elmokit.tasks.formats.conll import TaggedSentence, read_columns
from elmokit.tasks.formats.conllu import read_conllu
from elmokit.tasks.formats.morphemes import read_morphemes
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.networks.crf import CRF
from elmokit.tasks.networks.encoder import (
    SentenceEncoder,
    SentenceEncoderConfig,
    VariationalDropout,
)
from elmokit.tasks.networks.tag_batches import cut_tags, gold_ids
from elmokit.tasks.tag_schemes import allowed_transitions
from elmokit.tasks.task import Labels, Sentence, Task, TaskModel, TaskScore, Tokenize, Units

DROPOUT = 0.5


class Tagger(TaskModel):
    """Word vectors → biLSTM → one score a tag → softmax at each word, or a CRF.

    Args:
        inputs: What is read at each word.
        tags: In the order of their ids.
        hidden_dims: Widths of the biLSTM layers, one direction.
        with_crf: BIOUL tags scored as whole sequences.
        dropout: Of the encoder's inputs and outputs (variational); mixtures are not dropped a
            second time.
    """

    def __init__(
        self,
        inputs: TokenInputs,
        tags: Labels,
        hidden_dims: tuple[int, ...],
        *,
        with_crf: bool,
        dropout: float = DROPOUT,
    ) -> None:
        super().__init__()
        self.inputs, self.tags = inputs, tags
        self._ids = {tag: number for number, tag in enumerate(tags)}
        config = SentenceEncoderConfig(hidden_dims=hidden_dims, dropout=dropout)
        self.encoder = SentenceEncoder(inputs.output_dim, config)
        self.dropout = VariationalDropout(dropout)
        self.to_tags = nn.Linear(self.encoder.output_dim, len(tags))
        self.crf = None
        if with_crf:
            allowed = torch.from_numpy(allowed_transitions(tags, "BIOUL"))
            self.crf = CRF(len(tags), boundary_scores=False, allowed=allowed)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh weights."""
        self.inputs.reset_parameters(generator)
        self.encoder.reset_parameters(generator)
        nn.init.xavier_uniform_(self.to_tags.weight, generator=generator)
        nn.init.zeros_(self.to_tags.bias)
        if self.crf is not None:
            self.crf.reset_parameters(generator)

    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        """Return the mean over words (softmax) or sentences (CRF), and the mixtures' penalty."""
        batch = batches[0]
        logits, gold = self._logits(batch), gold_ids(examples, self._ids, batch.mask)
        if self.crf is not None:
            loss = -self.crf(logits, gold, batch.mask).mean()
        else:
            loss = functional.cross_entropy(logits[batch.mask], gold[batch.mask])
        return loss + self.inputs.penalty()

    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[list[str]]:
        """Return the tags of each sentence."""
        batch = batches[0]
        logits = self._logits(batch)
        best = logits.argmax(dim=2) if self.crf is None else self.crf.decode(logits, batch.mask)[0]
        return cut_tags(best, self.tags, batch.mask)

    def _logits(self, batch: TokenBatch) -> Tensor:
        encoded = self.encoder(self.inputs(batch), batch.mask)
        return self.to_tags(self.dropout(encoded))


class _Tagging(Task[TaggedSentence]):
    """What both kinds of tagging share."""

    def sentences(self, example: TaggedSentence) -> tuple[Sentence, ...]:
        """Return the words that the biLM reads."""
        return (example.tokens,)

    def gold(self, example: TaggedSentence) -> list[str]:
        """Return the right answer."""
        return list(example.tags)

    def example_of(self, *sentences: Sentence) -> TaggedSentence:
        """Make an example of new words."""
        (tokens,) = sentences
        location = Location(path=Path("text"), line=1)
        return TaggedSentence(tokens=tokens, tags=("",) * len(tokens), location=location)


class PosTask(_Tagging):
    """Parts of speech, from CoNLL-U.

    Args:
        units: ``words`` with universal tags, or ``morphemes`` with the tags of column 5.
    """

    name, metric, suffixes = "pos", "accuracy", (".conllu",)
    default_dropout = DROPOUT
    all_units = ("words", "morphemes")
    paper_inputs = InputSettings(dropout=0.0)

    def __init__(self, *, units: Units = "words") -> None:
        self.units: Units = units

    def in_units(self, units: Units) -> Task[TaggedSentence]:
        """Return the task for data in these units."""
        super().in_units(units)
        return PosTask(units=units)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[TaggedSentence]:
        """Read examples with their gold."""
        return list(read_conllu(path) if self.units == "words" else read_morphemes(path))

    def labels(self, examples: Sequence[TaggedSentence]) -> Labels:
        """Return the labels, in the order of their ids."""
        return sorted({tag for example in examples for tag in example.tags})

    def build(
        self, inputs: TokenInputs, labels: Labels, hidden_dims: tuple[int, ...], dropout: float
    ) -> Tagger:
        """Build the network."""
        return Tagger(inputs, labels, hidden_dims, with_crf=False, dropout=dropout)

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        """Compare predictions with gold."""
        report = score_label_sequences(predicted, gold)
        return TaskScore(self.metric, report.accuracy, {}, report.counts)

    def show(self, example: TaggedSentence, prediction: list[str]) -> str:
        """Return the answer as a person reads it."""
        return " ".join(
            f"{word}/{tag}" for word, tag in zip(example.tokens, prediction, strict=True)
        )

    def as_json(self, example: TaggedSentence, prediction: list[str]) -> dict[str, Any]:
        """Return the answer for machines."""
        return {"tokens": list(example.tokens), "tags": prediction}


class NerTask(_Tagging):
    """Named entities, from columns of words and IOB2 tags; BIOUL inside."""

    name, metric = "ner", "span F1"
    default_dropout = DROPOUT
    paper_inputs = InputSettings(layer_l2=0.1, dropout=0.0)

    @property
    def default_hidden_dims(self) -> tuple[int, ...]:
        """Widths of the recurrent layers, one direction."""
        return (200, 100)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[TaggedSentence]:
        """Read examples with their gold."""
        return [
            TaggedSentence(
                tokens=sentence.tokens, tags=tuple(convert_tags(sentence.tags, scheme="bioul")),
                comments=sentence.comments, location=sentence.location,
            )
            for sentence in read_columns(path, spaces="drop")
        ]  # fmt: skip

    def gold(self, example: TaggedSentence) -> list[str]:
        """Return the right answer."""
        return convert_tags(example.tags, scheme="iob2")

    def labels(self, examples: Sequence[TaggedSentence]) -> Labels:
        """Return the labels, in the order of their ids."""
        types = {tag[2:] for example in examples for tag in example.tags if tag != "O"}
        return ["O", *(f"{prefix}-{kind}" for kind in sorted(types) for prefix in "BILU")]

    def build(
        self, inputs: TokenInputs, labels: Labels, hidden_dims: tuple[int, ...], dropout: float
    ) -> Tagger:
        """Build the network."""
        return Tagger(inputs, labels, hidden_dims, with_crf=True, dropout=dropout)

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        """Compare predictions with gold."""
        report = score_tags(predicted, gold)
        overall = report.overall
        details = {"precision": overall.precision, "recall": overall.recall}
        return TaskScore(self.metric, overall.f1, details, report.counts)

    def show(self, example: TaggedSentence, prediction: list[str]) -> str:
        """Return the answer as a person reads it."""
        words = list(example.tokens)
        for kind, start, end in read_spans(prediction):
            words[start] = f"[{words[start]}"
            words[end - 1] = f"{words[end - 1]} {kind}]"
        return " ".join(words)

    def as_json(self, example: TaggedSentence, prediction: list[str]) -> dict[str, Any]:
        """Return the answer for machines."""
        entities = [
            {"type": kind, "start": start, "end": end, "text": " ".join(example.tokens[start:end])}
            for kind, start, end in read_spans(prediction)
        ]
        return {"tokens": list(example.tokens), "entities": entities}
