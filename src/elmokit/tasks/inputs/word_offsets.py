"""Positions in a text of the words that a tokenizer made of it."""

import re
from collections.abc import Sequence

MAX_ALTERED = 80
"""Words plus characters of the longest stretch that a tokenizer may alter."""

Offsets = tuple[tuple[int, int], ...]
"""``[start, end)`` of each word, in characters."""

_BLANK = re.compile(r"[\s\u200b\ufeff]*")
_ALONE = 3  # extra cost of a matching word whose next word does not match


def align_words(words: Sequence[str], text: str) -> Offsets | None:
    """Find the characters of each word in the text it came from, from left to right.

    Words match as they are, or ignoring case. Words that the tokenizer altered (``갔다`` → ``가 었
    다``, ``can't`` → ``ca not``) share the stretch of text up to the next word that matches. A word
    with nothing in the text is empty (``start == end``). Other characters are skipped.

    Returns ``[start, end)`` of each word, in order, or None if somewhere nothing matches within
    `MAX_ALTERED` words and characters.
    """
    offsets: list[tuple[int, int]] = []
    at = 0
    while len(offsets) < len(words):
        at = _after_blank(text, at)
        word = words[len(offsets)]
        end = min(at + len(word), len(text))
        if text.startswith(word, at) or text[at:end].casefold() == word.casefold():
            offsets.append((at, end))
            at = end
            continue
        found = _altered_stretch(words, len(offsets), text, at)
        if found is None:
            return None
        num_words, width = found
        end = at + len(text[at : at + width].rstrip())
        offsets += [(at, end)] * num_words
        at += width
    return tuple(offsets)


def _altered_stretch(
    words: Sequence[str], first: int, text: str, at: int
) -> tuple[int, int] | None:
    """Return how many words and characters to skip until a word matches, or None.

    As few as possible, but up to `_ALONE` more if the word after it matches, too: short words occur
    by accident in many places.
    """
    best, best_cost = None, MAX_ALTERED + _ALONE + 1
    for size in range(1, MAX_ALTERED + 1):
        if size >= best_cost:
            break
        for num_words in range(min(size, len(words) - first) + 1):
            num_found = _words_at(words, first + num_words, text, at + size - num_words)
            cost = size if num_found == 2 else size + _ALONE
            if num_found and cost < best_cost:
                best, best_cost = (num_words, size - num_words), cost
    return best


def _words_at(words: Sequence[str], index: int, text: str, at: int) -> int:
    """Return how many of two words from ``index`` on match here; the ends of both count as 2."""
    if at > len(text):
        return 0
    if index == len(words):
        return 2 if _after_blank(text, at) == len(text) else 0
    if not text.startswith(words[index], at):
        return 0
    at = _after_blank(text, at + len(words[index]))
    return 2 if index + 1 == len(words) or text.startswith(words[index + 1], at) else 1


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None
    return found.end()


def covering_words(offsets: Offsets, start: int, end: int) -> tuple[int, int] | None:
    """Return ``[first, last)`` of the words that overlap ``[start, end)``, if any."""
    covering = [index for index, (a, b) in enumerate(offsets) if a < b and a < end and b > start]
    return (covering[0], covering[-1] + 1) if covering else None
