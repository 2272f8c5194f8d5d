"""Semantic roles: one example for each predicate of a sentence, from JSON lines.

A line is ``{"id", "tokens", "pos", "predicates": [{"index", "lemma", "sense", "tags"}]}``; ``tags``
are IOB2 over the whole sentence with PropBank roles (``B-ARG0``, ``I-ARGM-TMP``, ``B-V``).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel

from elmokit.files.atomic import StrPath
from elmokit.tasks.formats.conll import to_iob2
from elmokit.tasks.formats.reading import ExampleReport, read_examples
from elmokit.tasks.formats.records import Record, read_records


class _Predicate(BaseModel):
    index: int
    tags: tuple[str, ...] = ()


class AnnotatedSentence(BaseModel):
    """A line of a file."""

    tokens: tuple[str, ...]
    pos: tuple[str, ...] = ()
    predicates: list[_Predicate]


@dataclass(frozen=True, kw_only=True, slots=True)
class PredicateRoles:
    """A sentence and the roles of its words for one predicate."""

    tokens: tuple[str, ...]
    predicate: int  # index of its token
    tags: tuple[str, ...]
    """IOB2, as in the data: ``B-V`` need not be at ``predicate`` if the verb is split."""
    text: str | None = None  # as it was written, with its marks, if that is known


def read_sentence(record: Record) -> AnnotatedSentence:
    """Return a record as a sentence, whose predicates are words of it."""
    sentence = record.as_model(AnnotatedSentence)
    for number, predicate in enumerate(sentence.predicates):
        if not 0 <= predicate.index < len(sentence.tokens):
            raise replace(record.location, part=f"predicates[{number}]").error(
                f"index {predicate.index} is outside the sentence of {len(sentence.tokens)} tokens."
            )
    return sentence


def read_propbank(path: StrPath) -> Iterator[PredicateRoles]:
    """Yield one example for each predicate; sentences with an empty token are skipped."""
    return read_examples(path, _read)


def _read(path: Path, report: ExampleReport) -> Iterator[PredicateRoles]:
    for record in read_records(path):
        sentence = read_sentence(record)
        tokens = sentence.tokens
        for number, predicate in enumerate(sentence.predicates):
            location, tags = replace(record.location, part=f"predicates[{number}]"), predicate.tags
            if not all(tokens):
                report.skip("empty_token", location)
                continue
            if len(tags) != len(tokens):
                raise location.error(f"{len(tokens)} `tokens`, but {len(tags)} `tags`.")
            tags = tuple(to_iob2(tags, [location] * len(tags), report))
            yield PredicateRoles(tokens=tokens, predicate=predicate.index, tags=tags)
