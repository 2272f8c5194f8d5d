"""F1 of semantic roles, counted like srl-eval of CoNLL-2005.

An example is a proposition: the tags of a sentence for one predicate. The predicate (V) is not
scored; R-X is a type of its own. C-X continues the latest argument X, which then has several
pieces; without one it is an ordinary X.
"""

from collections.abc import Sequence

from elmokit.metrics.span_f1 import SpanScore, read_spans, score_tags

Argument = tuple[str, tuple[tuple[int, int], ...]]
"""Type and pieces ``(start, end)``, in order."""


def read_arguments(tags: Sequence[str]) -> list[Argument]:
    """Return the arguments of one proposition without the predicate, by first piece."""
    pieces: list[tuple[str, list[tuple[int, int]]]] = []
    latest: dict[str, list[tuple[int, int]]] = {}
    for label, start, end in read_spans(tags):
        role = label.removeprefix("C-")
        if role != label and role in latest:
            latest[role].append((start, end))
        else:
            latest[role] = [(start, end)]
            pieces.append((role, latest[role]))
    return [(role, tuple(places)) for role, places in pieces if role != "V"]


def score_roles(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> SpanScore:
    """Score propositions: an argument counts if its type and all its pieces are correct.

    Raises:
        InputError: if predicted and gold differ in propositions or tokens, or a tag is unreadable.
    """
    return score_tags(predicted, gold, read=read_arguments)
