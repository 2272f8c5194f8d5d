"""Semantic roles: who does what to whom."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmokit.errors import InputError
from elmokit.metrics.span_f1 import Span, read_arguments
from elmokit.tasks.formats.propbank import PredicateRoles, read_propbank
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.sampling import DataFile, predicates_of
from elmokit.tasks.tagging import SpanTaggingTask
from elmokit.tasks.task import Sentence, Tokenize
from elmokit.tasks.written import Mark, WrittenWords
from elmokit.text.alignment import align, covering_words
from elmokit.text.given_sentences import split_sentence
from elmokit.text.tokenizers.protocol import Tokenizer
from elmokit.wording import shown

_MARKED = re.compile(r"([^*]*)\*([^*]*)\*([^*]*)")


class SrlTask(SpanTaggingTask[PredicateRoles]):
    """Semantic roles, from JSON lines of sentences with their predicates; BIO inside."""

    name, metric = "srl", "F1"
    prefixes, field_names = "BI", ("roles", "role")
    network, default_dropout = "tagger.RoleLabeler", 0.1
    encoder = "highway LSTM"
    positions = ("input", "output", "both")
    paper_inputs = InputSettings(characters=False)
    default_hidden_dims = (300,) * 8
    divided_by = staticmethod(predicates_of)
    scored_spans = staticmethod(read_arguments)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[PredicateRoles]:
        return list(read_propbank(path))

    def divide(self, path: Path, subset: str = "all") -> DataFile:
        if subset not in ("all", "verbs"):
            raise InputError(f"The task srl has no subset {subset!r}; choose all or verbs.")
        return predicates_of(path, only_verbs=subset == "verbs")

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
