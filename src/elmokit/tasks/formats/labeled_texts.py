"""Texts with one label: records of a text or a pair of texts, and the sentiment trees of SST."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import StrictInt, StrictStr

from elmokit.errors import InputError, Location
from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines
from elmokit.tasks.formats.reading import (
    ExampleReport,
    first_named,
    read_examples,
    read_records,
)
from elmokit.text.given_sentences import Tokenize
from elmokit.text.normalization import TREEBANK_BRACKETS

NLI_LABELS = ("entailment", "neutral", "contradiction")
MAX_TEXT_WORDS = 10_000
"""Of a text; attention over that many takes 400 MB for each of several tensors."""

# The beginning of a node of a tree with its label, its end, or a word.
_TREE_PIECE = re.compile(r" *(?:\((?P<label>[0-4])(?= )|(?P<close>\))|(?P<word>[^() ]+)) *")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabeledTexts:
    """A text or a pair of texts, none of them blank, and their class."""

    texts: tuple[str, ...]  # as they were written; the words of a tree joined by spaces
    sentences: tuple[tuple[str, ...], ...]
    label: str


def check_length(sentence: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a text; InputError if they are more than `MAX_TEXT_WORDS`."""
    if len(sentence) > MAX_TEXT_WORDS:
        raise InputError(
            f"The text has {len(sentence)} words; at most {MAX_TEXT_WORDS} are allowed."
        )
    return sentence


def read_labeled_texts(
    path: StrPath,
    tokenize: Tokenize,
    *,
    texts: Sequence[Sequence[str]] = (("text",),),
    label: Sequence[str] = ("label",),
    missing: Collection[str] = ("",),
) -> Iterator[LabeledTexts]:
    """Yield the records of a JSON-lines, TSV or CSV file.

    ``texts`` has the possible names of the field of each text, ``label`` those of the label's. A
    record with a blank text is a fault; one whose label is ``missing`` is skipped without one.
    """

    def examples(path: Path, report: ExampleReport) -> Iterator[LabeledTexts]:
        names: list[str] = []
        for record in read_records(path):
            names = names or [first_named(iter([record]), each) for each in (*texts, label)]
            written = tuple(map(record.text, names[:-1]))
            value = record.value(names[-1], StrictStr | StrictInt | None)
            class_label = "" if value is None else str(value).strip()
            if class_label in missing:
                report.skip("no_gold_label", record.location)
            elif not all(text.strip() for text in written):
                report.skip("empty_text", record.location)
            else:
                try:
                    words = tuple(check_length(tuple(tokenize(text))) for text in written)
                except InputError as error:
                    raise record.location.error(str(error)) from error
                yield LabeledTexts(texts=written, sentences=words, label=class_label)

    return read_examples(path, examples)


def read_sentiment_trees(
    path: StrPath, *, min_phrase_tokens: int | None = None
) -> Iterator[LabeledTexts]:
    """Yield sentences of a file with one tree per line, ``(3 (2 It) (4 shines))``.

    With ``min_phrase_tokens``, every phrase of at least that length follows its sentence.
    """

    def examples(path: Path) -> Iterator[LabeledTexts]:
        for number, line in numbered_lines(path):
            if not line.strip(" "):
                continue
            tokens, nodes = _parse_tree(line, Location(path=path, line=number))
            for index, (label, start, end) in enumerate(nodes):
                is_long = min_phrase_tokens is not None and end - start >= min_phrase_tokens
                if index == 0 or is_long:  # node 0 is the sentence
                    words = tuple(tokens[start:end])
                    yield LabeledTexts(texts=(" ".join(words),), sentences=(words,), label=label)

    return read_examples(path, lambda path, _: examples(path))


def _parse_tree(line: str, location: Location) -> tuple[list[str], list[tuple[str, int, int]]]:
    """Return the words and ``(label, start, end)`` of each node, the root first."""
    # Not recursive: a tree may be as deep as its text is long.
    tokens: list[str] = []
    nodes: list[tuple[str, int, int]] = []
    open_nodes: list[int] = []
    at = 0
    while at < len(line) and (match := _TREE_PIECE.match(line, at)):
        # Outside of a node nothing but the first bracket is allowed: one tree per line.
        if not open_nodes and (nodes or not match["label"]):
            break
        at = match.end()
        if match["label"]:
            open_nodes.append(len(nodes))
            nodes.append((match["label"], len(tokens), len(tokens)))
        elif match["close"]:
            label, start, _ = nodes[open_nodes[-1]]
            if start == len(tokens):
                break  # a node without words
            nodes[open_nodes.pop()] = (label, start, len(tokens))
        else:
            # Treebank escapes: -LRB- is a bracket, \/ a slash.
            word = TREEBANK_BRACKETS.get(match["word"], match["word"])
            tokens.append(word.replace("\\/", "/").replace("\\*", "*"))
    if at < len(line) or open_nodes or not nodes:
        raise location.error(
            f"invalid sentiment tree at character {at}. Expected: one tree per line with labels 0 "
            "to 4, such as (3 (2 It) (4 shines))."
        )
    return tokens, nodes
