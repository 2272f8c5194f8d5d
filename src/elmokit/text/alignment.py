"""Where the words that a tokenizer made of a text are in it."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import islice

from elmokit.text.normalization import KEPT_JOINER, combining_marks, normalize, plain_1_rules

MAX_ALTERED = 80
"""Words plus characters of the longest stretch that a tokenizer may alter."""

Offsets = tuple[tuple[int, int], ...]
"""``[start, end)`` of each word, in characters."""

_HANGUL = re.compile("[가-힣]")
_BLANK = re.compile(r"[\s\u200b\ufeff]*")
_SHORT = 16  # characters
_ALONE = 3  # extra cost of a matching word whose next word does not match


def align(words: Sequence[str], text: str) -> Offsets | None:
    """Find ``[start, end)`` of each word in the raw text it came from, from left to right.

    Both are compared in plain form, ignoring case. Korean morphemes are where Kiwi says: those that
    share a syllable overlap. Other words that a tokenizer altered (``can't`` → ``ca not``) share
    the stretch of text up to the next word that matches. A word with nothing in the text is empty.
    None if nothing matches within `MAX_ALTERED` words and characters.
    """
    # Most words stand in the text as they are: neither plain forms nor Kiwi are needed.
    spans = _align(words, text, may_alter=False)
    if spans is not None:
        return tuple(spans)
    plain = _PlainText(text)
    plain_words = [normalize(word, "plain-1") for word in words]
    spans = _align(plain_words, plain.text, may_alter=False)
    if spans is None and _HANGUL.search(plain.text):
        from elmokit.text.tokenizers.korean import places_of_morphemes

        # Models without normalization read the text as it is.
        if (raw_spans := places_of_morphemes(words, text)) is not None:
            return tuple(raw_spans)
        spans = places_of_morphemes(plain_words, plain.text)
    # Of any other tokenizer nothing is known, so what it altered is searched for.
    spans = spans or _align(plain_words, plain.text)
    return None if spans is None else tuple(plain.place(*span) for span in spans)


def align_sentences(sentences: Sequence[Sequence[str]], text: str) -> list[Offsets | None]:
    """Return the offsets in ``text`` of the words of each of its sentences; see `align`."""
    all_offsets = align([word for words in sentences for word in words], text)
    if all_offsets is None:
        return [None] * len(sentences)
    offsets = iter(all_offsets)
    return [tuple(islice(offsets, len(words))) for words in sentences]


class _PlainText:
    def __init__(self, text: str) -> None:
        self.text, self._length = text, len(text)
        self._places: list[tuple[int, int]] | None = None  # none: of each character, itself
        if normalize(text, "plain-1") == text:
            return
        parts, self._places = [], []
        for match in cluster_pattern().finditer(text):
            plain = _plain_short if len(match.group()) <= _SHORT else normalize
            parts.append(match["kept_joiner"] or plain(match.group(), "plain-1"))
            self._places += [match.span()] * len(parts[-1])
        self.text = "".join(parts)

    def place(self, start: int, end: int) -> tuple[int, int]:
        if self._places is None:
            return start, end
        if start < end:
            return self._places[start][0], self._places[end - 1][1]
        at = self._places[start][0] if start < len(self._places) else self._length
        return at, at


@cache
def cluster_pattern() -> re.Pattern[str]:
    """Find the smallest pieces that normalization takes together.

    Treebank signs; a joiner that stays, because of its neighbors; a character with the marks,
    vowels and finals that composition may join to it.
    """
    signs = plain_1_rules().signs
    quotes = "".join(["'", "`", *(sign for sign, plain in signs.items() if plain in ("'", "`"))])
    return re.compile(
        rf"(?P<kept_joiner>{KEPT_JOINER}) |"
        rf"(?<!\w)-[LRlr][RSCrsc][Bb]-(?!\w) | (?<![{quotes}])[{quotes}]{{2}}(?![{quotes}])"
        rf"| \\+[/*] | (?s:.)[{combining_marks()}\uff9e\uff9f\u1160-\u11ff\ud7b0-\ud7fb]*",
        re.VERBOSE,
    )


_plain_short = lru_cache(maxsize=1 << 16)(normalize)  # longer clusters would fill the memory


def _align(
    words: Sequence[str], text: str, *, may_alter: bool = True
) -> list[tuple[int, int]] | None:
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
        stretch = _altered_stretch(words, len(offsets), text, at) if may_alter else None
        if stretch is None:
            return None
        num_words, width = stretch
        end = at + len(text[at : at + width].rstrip())
        offsets += [(at, end)] * num_words
        at += width
    return offsets


def _altered_stretch(
    words: Sequence[str], first: int, text: str, at: int
) -> tuple[int, int] | None:
    """Return how many words and characters to skip until a word matches, or None.

    As few as possible, but up to `_ALONE` more if the word after it matches, too: short words occur
    by accident in many places.
    """
    # Words and characters are skipped in order of their sum, so the first match is the nearest.
    best, best_cost = None, MAX_ALTERED + _ALONE + 1
    for size in range(1, MAX_ALTERED + 1):
        if size >= best_cost:
            break
        for num_words in range(min(size, len(words) - first) + 1):
            num_matches = _words_at(words, first + num_words, text, at + size - num_words)
            cost = size if num_matches == 2 else size + _ALONE
            if num_matches and cost < best_cost:
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
    blank = _BLANK.match(text, at)
    assert blank is not None
    return blank.end()


def covering_words(offsets: Offsets, start: int, end: int) -> tuple[int, int] | None:
    """Return ``[first, last)`` of the words that overlap ``[start, end)``, if any."""
    covering = [index for index, (a, b) in enumerate(offsets) if a < b and a < end and b > start]
    return (covering[0], covering[-1] + 1) if covering else None
