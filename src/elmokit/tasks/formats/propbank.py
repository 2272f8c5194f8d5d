"""Semantic roles: one example for each predicate of a sentence, from JSON lines.

A line is ``{"id", "tokens", "pos", "predicates": [{"index", "lemma", "sense", "tags"}]}``; ``tags``
are IOB2 over the whole sentence with the roles of PropBank (``B-ARG0``, ``I-ARGM-TMP``, ``B-V``).
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from elmokit.files.location import Location, shown
from elmokit.tasks.formats.conll import check_iob
from elmokit.tasks.formats.reading import (
    DEFAULT_MAX_SKIPPED_SHARE,
    ExampleReport,
    check_arguments,
    checked,
)
from elmokit.tasks.formats.records import Record, check_unicode, read_records


@dataclass(frozen=True, kw_only=True, slots=True)
class PredicateRoles:
    """A sentence and the roles of its words for one predicate."""

    tokens: tuple[str, ...]
    predicate: int
    """Index of the predicate's token."""
    tags: tuple[str, ...]
    """IOB2, as the data has them: ``B-V`` need not stand at ``predicate`` where it is split."""
    lemma: str | None = None
    sense: str | None = None
    sentence: str | None = None
    """What the data calls the sentence."""
    location: Location


def read_propbank(
    path: str | os.PathLike[str],
    *,
    predicates: Literal["all", "verbs"] = "all",
    report: ExampleReport | None = None,
    max_skipped_share: float = DEFAULT_MAX_SKIPPED_SHARE,
) -> Iterator[PredicateRoles]:
    """Yield one example for each predicate; sentences without one yield nothing.

    Args:
        path: JSON lines, plain or compressed.
        predicates: ``verbs`` keeps those whose part of speech is ``MD`` or begins with ``V``.
        report: Counts what is read and skipped.
        max_skipped_share: Of the predicates; more is an error.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for a missing or wrong field, as many tags as there are not
            tokens, an index outside the sentence, an ill-formed tag, and a file without predicates.
    """
    found = check_arguments(path, max_skipped_share)
    report = ExampleReport() if report is None else report
    return checked(
        found, _read(found, predicates, report), report, max_skipped_share=max_skipped_share
    )


def _read(
    path: Path, predicates: Literal["all", "verbs"], report: ExampleReport
) -> Iterator[PredicateRoles]:
    for record in read_records(path):
        tokens = _strings(record.fields, "tokens", record.location)
        pos = _strings(record.fields, "pos", record.location) if predicates == "verbs" else tokens
        if len(pos) != len(tokens):
            raise record.location.error(
                f"{len(pos)} parts of speech for {len(tokens)} tokens. Each token needs one."
            )
        for number, predicate in enumerate(_objects(record)):
            location = Location(path=path, line=record.location.line, part=f"predicates[{number}]")
            example = _example(record, tokens, predicate, location)
            if predicates == "verbs" and not _is_verb(pos[example.predicate]):
                continue
            if not all(tokens):
                report.skip("empty_token", location)
                continue
            yield example


def _example(
    record: Record, tokens: tuple[str, ...], predicate: dict[str, Any], location: Location
) -> PredicateRoles:
    fields = Record(fields=predicate, location=location)
    index = fields.integer("index")
    if not 0 <= index < len(tokens):
        raise location.error(f"index {index} lies outside the sentence of {len(tokens)} tokens.")
    tags = _strings(predicate, "tags", location)
    if len(tags) != len(tokens):
        raise location.error(f"{len(tags)} tags for {len(tokens)} tokens. Each token needs one.")
    tag_before = "O"
    for tag in tags:
        check_iob(tag, tag_before, None, location)
        tag_before = tag
    return PredicateRoles(
        tokens=tokens,
        predicate=index,
        tags=tags,
        lemma=fields.text_or_none("lemma"),
        sense=fields.text_or_none("sense"),
        sentence=record.text_or_none("id"),
        location=location,
    )


def _is_verb(pos: str) -> bool:
    return pos.startswith("V") or pos == "MD"


def _objects(record: Record) -> list[dict[str, Any]]:
    value = record.value("predicates")
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise record.location.error(
            f"field 'predicates' must be a list of JSON objects, got {shown(value)}."
        )
    return value


def _strings(fields: Any, name: str, location: Location) -> tuple[str, ...]:
    value = Record(fields=fields, location=location).value(name)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise location.error(f"field {name!r} must be a list of strings, got {shown(value)}.")
    for one in value:
        check_unicode(one, location)
    return tuple(value)
