"""Labeled texts: records with named fields, and the sentiment trees of SST."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import FormatError, InputError
from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines
from elmokit.files.location import Location, shown
from elmokit.tasks.formats.reading import ExampleReport, read_examples
from elmokit.tasks.formats.records import labeled_texts
from elmokit.text.normalization import TREEBANK_BRACKETS

SST_LABELS = ("0", "1", "2", "3", "4")
"""Very negative to very positive."""

_TREE_PIECE = re.compile(r"[()]|[^() ]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabeledText:
    """A text that is not blank, and its class."""

    text: str
    label: str
    tokens: tuple[str, ...] | None = None
    """Its words if the data is tokenized; ``text`` is these joined by spaces."""
    location: Location


def read_text_labels(
    path: StrPath,
    *,
    text: str = "text",
    label: str = "label",
    labels: Collection[str] | None = None,
    report: ExampleReport | None = None,
) -> Iterator[LabeledText]:
    """Yield the texts of a JSON-lines, TSV or CSV file (by name), plain or compressed.

    A blank text is skipped as a fault; one without a label is skipped and counted, but not as a
    fault. ``labels`` None allows any label. NSMC has its texts in the field ``document``.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for a missing field, an unknown label, a line that is not a
            record, or a file without texts.
    """
    fields = ((text,), label)
    return read_examples(
        path,
        lambda path, report: (
            LabeledText(text=text, label=label, location=location)
            for (text,), label, location in labeled_texts(path, fields, labels, report)
        ),
        report,
    )


def read_sentiment_trees(
    path: StrPath, *, min_phrase_tokens: int | None = None, report: ExampleReport | None = None
) -> Iterator[LabeledText]:
    r"""Yield sentences of a file with one tree per line, ``(3 (2 It) (4 shines))``, and phrases.

    Treebank escapes are undone: ``-LRB-`` becomes a bracket, ``\/`` a slash. With
    ``min_phrase_tokens``, every occurrence of a phrase of at least that length follows its sentence
    (the paper trains on 4 and more); sentences come whatever their length.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        InputError: at once, if ``min_phrase_tokens`` is below 1.
        FormatError: while reading, for unbalanced brackets, labels other than 0 to 4, nodes without
            words, or a file without trees.
    """
    if min_phrase_tokens is not None and min_phrase_tokens < 1:
        raise InputError(
            f"`min_phrase_tokens` must be at least 1, got {min_phrase_tokens}. Leave it out for "
            f"whole sentences only."
        )
    return read_examples(path, lambda path, _: _read_trees(path, min_phrase_tokens), report)


def _read_trees(path: Path, min_phrase_tokens: int | None) -> Iterator[LabeledText]:
    for number, line in numbered_lines(path):
        if not line.strip(" "):
            continue
        location = Location(path=path, line=number)
        tokens, nodes = _parse_tree(line, location)
        for index, (label, start, end) in enumerate(nodes):
            is_long = min_phrase_tokens is not None and end - start >= min_phrase_tokens
            if index == 0 or is_long:  # node 0 is the sentence
                words = tuple(tokens[start:end])
                text = " ".join(words)
                yield LabeledText(text=text, label=label, tokens=words, location=location)


def _parse_tree(line: str, location: Location) -> tuple[list[str], list[tuple[str, int, int]]]:
    """Return the words and ``(label, start, end)`` of each node, the root first.

    Not recursive: a tree may be as deep as its text is long.
    """
    tokens: list[str] = []
    nodes: list[tuple[str, int, int]] = []
    open_nodes: list[int] = []
    expects_label = False
    for match in _TREE_PIECE.finditer(line):
        piece = match.group()
        if expects_label:
            if piece not in SST_LABELS:
                raise _tree_error(
                    location, match.start(), f"{shown(piece)} is not a label (0 to 4)"
                )
            open_nodes.append(len(nodes))
            nodes.append((piece, len(tokens), len(tokens)))
            expects_label = False
        elif piece == "(":
            if nodes and not open_nodes:
                raise _tree_error(location, match.start(), "a second tree on the line")
            expects_label = True
        elif not open_nodes:
            raise _tree_error(location, match.start(), f"{shown(piece)} is outside the brackets")
        elif piece == ")":
            index = open_nodes.pop()
            label, start, _ = nodes[index]
            if start == len(tokens):
                raise _tree_error(location, match.start(), "a node without words")
            nodes[index] = (label, start, len(tokens))
        else:
            word = TREEBANK_BRACKETS.get(piece, piece)
            tokens.append(word.replace("\\/", "/").replace("\\*", "*"))
    if open_nodes or expects_label:
        raise _tree_error(location, len(line), "a bracket is not closed")
    return tokens, nodes


def _tree_error(location: Location, character: int, what: str) -> FormatError:
    return location.error(
        f"invalid sentiment tree: {what}, at character {character}. Expected: one tree per line, "
        f"such as (3 (2 It) (4 shines))."
    )
