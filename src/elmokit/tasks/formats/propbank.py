"""Semantic roles: one example for each predicate of a sentence, from JSON lines.

A line is ``{"id", "tokens", "pos", "predicates": [{"index", "lemma", "sense", "tags"}]}``; ``tags``
are IOB2 over the whole sentence with PropBank roles (``B-ARG0``, ``I-ARGM-TMP``, ``B-V``).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from elmokit.files.atomic import StrPath
from elmokit.files.location import Location, counted
from elmokit.tasks.formats.conll import check_iob
from elmokit.tasks.formats.reading import ExampleReport, read_examples
from elmokit.tasks.formats.records import Record, read_records


@dataclass(frozen=True, kw_only=True, slots=True)
class PredicateRoles:
    """A sentence and the roles of its words for one predicate."""

    tokens: tuple[str, ...]
    predicate: int
    """Index of its token."""
    tags: tuple[str, ...]
    """IOB2, as in the data: ``B-V`` need not be at ``predicate`` if the verb is split."""
    location: Location
    text: str | None = None
    """As it was written, with its marks, if that is known."""


def read_propbank(
    path: StrPath,
    *,
    predicates: Literal["all", "verbs"] = "all",
    report: ExampleReport | None = None,
) -> Iterator[PredicateRoles]:
    """Yield one example for each predicate; sentences with an empty token are skipped.

    ``predicates="verbs"`` keeps those with the part of speech of a verb, see `is_verb`.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for a missing or wrong field, a wrong number of tags, an index
            outside the sentence, an ill-formed tag, or a file without predicates.
    """
    return read_examples(path, lambda path, report: _read(path, predicates, report), report)


def is_verb(pos: str) -> bool:
    """Tell whether a part of speech begins with ``V`` or ``MD``, as those of verbs and modals."""
    return pos.startswith(("V", "MD"))


def _read(
    path: Path, predicates: Literal["all", "verbs"], report: ExampleReport
) -> Iterator[PredicateRoles]:
    for record in read_records(path):
        tokens = record.strings("tokens")
        pos = record.strings("pos") if predicates == "verbs" else tokens
        if len(pos) != len(tokens):
            raise record.location.error(
                f"{len(tokens)} `tokens`, but {len(pos)} `pos`. Each token needs one."
            )
        for predicate in record.records("predicates"):
            example = _example(tokens, predicate)
            if predicates == "verbs" and not is_verb(pos[example.predicate]):
                continue
            if all(tokens):
                yield example
            else:
                report.skip("empty_token", predicate.location)


def _example(tokens: tuple[str, ...], predicate: Record) -> PredicateRoles:
    location, index = predicate.location, predicate.integer("index")
    if not 0 <= index < len(tokens):
        raise location.error(
            f"index {index} is outside the sentence of {counted(len(tokens), 'token')}."
        )
    tags = predicate.strings("tags")
    if len(tags) != len(tokens):
        raise location.error(
            f"{len(tokens)} `tokens`, but {len(tags)} `tags`. Each token needs one."
        )
    tag_before = "O"
    for tag in tags:
        check_iob(tag, tag_before, location)
        tag_before = tag
    return PredicateRoles(tokens=tokens, predicate=index, tags=tags, location=location)
