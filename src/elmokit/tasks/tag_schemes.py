"""Tags that mark spans, and which of them may follow which.

``iob2`` (BIO): B-X begins a span of type X, I-X continues it, O is outside. ``bioul`` (BILOU):
spans of one word are U-X, longer ones B-X, any I-X, L-X.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from elmokit.metrics.span_f1 import TagScheme

MAX_TAGS = 4096
"""Of a scheme: what may follow is a matrix."""
_PREFIXES: dict[TagScheme, tuple[str, ...]] = {"iob2": ("B", "I"), "bioul": ("B", "I", "U", "L")}
"""Of tags inside a span."""
_BEGIN, _END = "begin", "end"
_MUST_GO_ON = {"iob2": (), "bioul": ("B", "I")}
"""Prefixes of a span that the next tag must continue."""
_MAY_GO_ON = ("B", "I")
"""Prefixes of a span that the next tag can continue."""
_CONTINUES = {"iob2": ("I",), "bioul": ("I", "L")}
"""Prefixes that continue the span before them."""


def allowed_transitions(tags: Sequence[str], scheme: TagScheme) -> np.ndarray:
    """Return which tags may follow which.

    ``tags`` are all tags in the order of their ids. Types may contain hyphens: ``B-C-ARG1`` is of
    type ``C-ARG1``. In ``iob2`` I-X only follows B-X or I-X; in ``bioul`` also, B-X and I-X only
    precede I-X or L-X.

    Returns:
        bool (Y + 2, Y + 2) for Y tags: entry (i, j) is True if tag j may come right after tag i;
        row Y is the start of a sentence, column Y + 1 its end (`elmokit.tasks.networks.crf`). Tags
        that nothing can complete (B-X without I-X and L-X) are kept; no path ends in them.

    Raises:
        ValueError: if a tag is not of the scheme or occurs twice, or there are none.
    """
    if scheme not in _PREFIXES:
        raise ValueError(f"`scheme` must be one of {', '.join(_PREFIXES)}, got {scheme!r}.")
    parts = [_split(tag, scheme) for tag in tags]
    if not parts:
        raise ValueError("`tags` is empty; give all tags, in the order of their ids.")
    twice = [tag for tag, count in Counter(tags).items() if count > 1]
    if twice:
        raise ValueError(f"`tags` holds {twice[0]!r} twice; give every tag once.")
    sources = [*parts, (_BEGIN, ""), (_END, "")]
    if len(sources) > MAX_TAGS:
        raise ValueError(f"`tags` holds {len(tags):,} tags; at most {MAX_TAGS:,} are possible.")
    return np.array([[_may_follow(a, b, scheme) for b in sources] for a in sources])


def _split(tag: str, scheme: TagScheme) -> tuple[str, str]:
    if tag == "O":
        return "O", ""
    prefix, hyphen, kind = tag.partition("-")
    prefixes = _PREFIXES[scheme]
    if prefix not in prefixes or not hyphen or not kind:
        forms = ", ".join(f"{letter}-TYPE" for letter in prefixes)
        raise ValueError(f"{tag!r} is not a tag of the scheme {scheme}: allowed are O, {forms}.")
    return prefix, kind


def _may_follow(before: tuple[str, str], after: tuple[str, str], scheme: TagScheme) -> bool:
    if before[0] == _END or after[0] == _BEGIN:
        return False
    if after[0] in _CONTINUES[scheme]:
        return before[0] in _MAY_GO_ON and before[1] == after[1]
    return before[0] not in _MUST_GO_ON[scheme]
