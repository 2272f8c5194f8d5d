"""Tasks that tag each word (parts of speech), or spans (named entities, semantic roles)."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from elmokit.errors import InputError, shown
from elmokit.metrics.task_scores import (
    PrecisionRecall,
    Span,
    accuracy_of,
    convert_tags,
    count_labels,
    count_spans,
    f1_of,
    read_arguments,
    read_spans,
    write_tags,
)
from elmokit.tasks.formats.conll import (
    TaggedCharacters,
    TaggedSentence,
    read_characters,
    read_columns,
    sentences_of,
    spans_of_characters,
)
from elmokit.tasks.formats.conllu import (
    PredicateRoles,
    is_comment,
    predicates_of,
    read_conllu,
    read_morphemes,
    read_propbank,
)
from elmokit.tasks.formats.data_files import DataFile
from elmokit.tasks.frozen_tagger import Mark, WrittenWords
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.task import Labels, Sentence, Task, TaskScore, Tokenize
from elmokit.text.alignment import align, covering_words
from elmokit.text.given_sentences import split_sentence
from elmokit.text.tokenizers.protocol import Tokenizer

Example = TypeVar("Example")


class TaggingTask(Task[Example]):
    """A task whose examples are sentences with ``tokens`` and ``tags``; scored by accuracy."""

    metric: ClassVar[str] = "accuracy"
    score_from_counts = staticmethod(accuracy_of)
    network: ClassVar[str] = "tagger.Tagger"
    default_dropout: ClassVar[float] = 0.5
    # The encoder drops the mixtures with its other inputs.
    paper_inputs: ClassVar[InputSettings] = InputSettings(dropout=0.0)
    divide = staticmethod(sentences_of)
    block = 400

    def sentences(self, example: Any) -> tuple[Sentence, ...]:
        return (example.tokens,)

    def gold(self, example: Any) -> list[str]:
        return list(example.tags)

    def labels(self, examples: Sequence[Any]) -> Labels:
        return sorted({tag for example in examples for tag in example.tags})

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        return self.score_of(count_labels(predicted, gold))

    def example_of(self, *sentences: Sentence, texts: Sequence[str] | None = None) -> Any:
        (tokens,) = sentences
        text = texts[0] if texts else None
        return TaggedSentence(tokens=tokens, tags=("",) * len(tokens), text=text)

    def place_words(self, example: Any) -> WrittenWords:
        return WrittenWords(example.tokens, example.text)

    def show(self, example: Any, prediction: list[str]) -> str:
        words = self.place_words(example).each()
        return " ".join(f"{word}/{tag}" for word, tag in zip(words, prediction, strict=True))

    def as_json(
        self, example: Any, prediction: list[str], probs: list[float] | None = None
    ) -> dict[str, Any]:
        words = self.place_words(example)
        tokens = words.as_json()
        for number, token in enumerate(tokens):
            token["tag"] = prediction[number]
            token |= {} if probs is None else {"probability": probs[number]}
        return {"text": words.text, "tokens": tokens}


class SpanTaggingTask(TaggingTask[Example]):
    """A task whose tags, BIOUL by default, mark spans of words with a type; scored by F1."""

    metric: ClassVar[str] = "span F1"
    score_from_counts = staticmethod(f1_of)
    network: ClassVar[str] = "tagger.CRFTagger"
    prefixes: ClassVar[str] = "BILU"  # of tags, in the order of their ids; O comes first
    field_names: ClassVar[tuple[str, str]] = ("spans", "type")
    """JSON names of the spans, and of a span's type."""
    scored_spans = staticmethod(read_spans)

    def labels(self, examples: Sequence[Any]) -> Labels:
        types = {tag[2:] for example in examples for tag in example.tags if tag != "O"}
        return ["O", *(f"{prefix}-{kind}" for kind in sorted(types) for prefix in self.prefixes)]

    def shown_label(self, label: str) -> str:
        return label[2:]

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        counts = count_spans(predicted, gold, read=self.scored_spans)
        overall = PrecisionRecall.of(*counts.rows.sum(axis=0))
        details = {"precision": overall.precision, "recall": overall.recall}
        return replace(self.score_of(counts), details=details)

    def show(self, example: Any, prediction: list[str]) -> str:
        return self.place_words(example).marked(map(self.mark, read_spans(prediction)))

    def mark(self, span: Span) -> Mark:
        kind, start, end = span
        return start, end, "[", f" {kind}]"

    def as_json(
        self, example: Any, prediction: list[str], probs: list[float] | None = None
    ) -> dict[str, Any]:
        words = self.place_words(example)
        spans_name, type_name = self.field_names
        spans = []
        for number, (kind, start, end) in enumerate(read_spans(prediction)):
            own = {} if probs is None else {"probability": probs[number]}
            spans.append({type_name: kind, **words.span(start, end), **own})
        return {"text": words.text, "tokens": words.as_json(), spans_name: spans}


class PosTask(TaggingTask[TaggedSentence]):
    """Parts of speech from CoNLL-U: universal tags of words, or morphemes' tags from column 5."""

    name, suffixes = "pos", (".conllu",)
    all_units = ("words", "morphemes")

    @staticmethod
    def divide(path: Path) -> DataFile:
        return sentences_of(path, is_comment=is_comment)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[TaggedSentence]:
        return list(read_conllu(path) if self.units == "words" else read_morphemes(path))


class NerTask(SpanTaggingTask[TaggedSentence]):
    """Named entities, from columns of words or characters and their tags; BIOUL inside.

    Characters are read as the tokens that the tokenizer makes of their text, but scored as they
    are: an entity whose boundary is inside a token cannot be found.
    """

    name, field_names = "ner", ("entities", "type")
    all_units = ("words", "characters")
    paper_inputs = InputSettings(layer_l2=0.1, dropout=0.0)
    default_hidden_dims = (200, 100)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[TaggedSentence]:
        if self.units == "characters":
            sentences = read_characters(path, tokenize)
        else:
            sentences = read_columns(path, spaces="drop")
        return [replace(s, tags=tuple(convert_tags(s.tags, scheme="bioul"))) for s in sentences]

    def gold(self, example: TaggedSentence) -> list[str]:
        if isinstance(example, TaggedCharacters):
            return list(example.character_tags)
        return convert_tags(example.tags, scheme="iob2")

    def in_units_of_gold(self, example: TaggedSentence, prediction: list[str]) -> list[str]:
        if not isinstance(example, TaggedCharacters):
            return prediction
        spans = spans_of_characters(read_spans(prediction), example.offsets)
        return write_tags(spans, len(example.character_tags), scheme="iob2")


_MARKED = re.compile(r"([^*]*)\*([^*]*)\*([^*]*)")


class SrlTask(SpanTaggingTask[PredicateRoles]):
    """Semantic roles, from JSON lines of sentences with their predicates; BIO inside."""

    name, metric = "srl", "F1"
    prefixes, field_names = "BI", ("roles", "role")
    network, default_dropout = "tagger.RoleLabeler", 0.1
    positions = ("input", "output", "both")
    paper_inputs = InputSettings(characters=False)
    default_hidden_dims = (300,) * 8
    divide = staticmethod(predicates_of)
    scored_spans = staticmethod(read_arguments)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[PredicateRoles]:
        return list(read_propbank(path))

    def example_of(
        self, *sentences: Sentence, texts: Sequence[str] | None = None
    ) -> PredicateRoles:
        before, predicate, after = sentences
        tokens = (*before, *predicate, *after)
        return PredicateRoles(
            tokens=tokens, predicate=len(before), tags=("O",) * len(tokens),
            text=texts[0] if texts else None,
        )  # fmt: skip

    def from_text(self, text: str, tokenizer: Tokenizer) -> PredicateRoles:
        marked = _MARKED.fullmatch(text)
        parts = _split(marked[1], marked[2], marked[3], tokenizer) if marked else ()
        return self.example_of(*_check_marked(parts, text), texts=[text])

    def from_words(self, words: Sequence[Any], tokenize: Tokenize) -> PredicateRoles:
        tokens = tuple(split_sentence(words, tokenize, where="it"))
        marked = [at for at, word in enumerate(tokens) if "*" in word]
        parts: Sequence[Sentence] = ()
        if len(marked) == 1 and (match := re.fullmatch(r"\*([^*]+)\*", tokens[marked[0]])):
            parts = tokens[: marked[0]], (match[1],), tokens[marked[0] + 1 :]
        return self.example_of(*_check_marked(parts, " ".join(tokens)))

    def show(self, example: PredicateRoles, prediction: list[str]) -> str:
        shown = super().show(example, prediction)
        return shown if example.text is None else shown.replace("*", "")

    def place_words(self, example: PredicateRoles) -> WrittenWords:
        return WrittenWords(example.tokens, example.text, without="*")

    def mark(self, span: Span) -> Mark:
        role, start, end = span
        return start, end, f"[{role} ", "]"

    def as_json(
        self, example: PredicateRoles, prediction: list[str], probs: list[float] | None = None
    ) -> dict[str, Any]:
        answer = super().as_json(example, prediction, probs)
        if example.text is not None:
            for role in answer["roles"]:
                role["text"] = role["text"].replace("*", "")  # between its words
        return answer | {"predicate": example.predicate}  # a number of a token


def _split(before: str, predicate: str, after: str, tokenizer: Tokenizer) -> Sequence[Sentence]:
    """Split a marked text as it is split without the marks; part by part if that has no places."""
    text = f"{before}{predicate}{after}"
    words = tuple(tokenizer.tokenize(text))
    offsets = align(words, text)
    marked = len(before), len(before) + len(predicate)
    covering = None if offsets is None else covering_words(offsets, *marked)
    if covering is None:
        return [tuple(tokenizer.tokenize(part)) for part in (before, predicate, after)]
    first, last = covering
    return words[:first], words[first:last], words[last:]


def _check_marked(parts: Sequence[Sentence], text: str) -> Sequence[Sentence]:
    if not parts or not parts[1]:
        raise InputError(
            f"One predicate must be marked, got {shown(text)}. Put asterisks around it and nowhere "
            "else: The dog *bit* the man."
        )
    return parts
