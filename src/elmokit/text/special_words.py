"""Special words of language models (``<s>``, ``<unk>``, ``[UNK]`` …) that stand in a text.

elmokit marks the ends of sentences and rare words itself. What is typed into a text is read as a
second mark or as a word like any other, and the easiest one to predict, so perplexities are of
another kind, and nothing else shows it.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

log = logging.getLogger(__name__)

GivenSentenceT = TypeVar("GivenSentenceT", bound=str | Iterable[str])
_MARK = re.compile(
    r"< ?/? ?(?:s|unk|unknown|pad|mask|bos|eos|sos|cls|sep|start|end) ?>"
    r"|\[ ?(?:unk|pad|mask|cls|sep|bos|eos) ?\]"
    r"|@ ?@ ?(?:unknown|padding) ?@ ?@"
    r"|< ?\| ?endoftext ?\| ?>",
    re.IGNORECASE,
)
"""elmokit's own (``<S>``, ``</S>``, ``<UNK>``) and those of others, whole or split (``< s >``)."""
_BARE_WORD = re.compile(r"(?<!\w)(?:UNK|__UNK__)(?!\w)")
"""Without brackets only capitals count: ``unk`` is a word of other languages."""
MAX_MARKED_SHARE = 0.001
"""Of the lines; plain text has some, such as ``[mask]``: Wikipedia in one of 400,000."""


def special_words_in(line: str) -> list[str]:
    words: list[str] = []
    if "<" in line or "[" in line or "@" in line:
        words += [word.replace(" ", "") for word in _MARK.findall(line)]
    if "UNK" in line:  # a pattern of its own: one for all takes three times as long
        words += _BARE_WORD.findall(_MARK.sub("", line))
    return words


class SpecialWordCount:
    def __init__(self) -> None:
        self.num_lines = self.num_marked = 0
        self._counts: Counter[str] = Counter()

    def add(self, line: str) -> None:
        self.num_lines += 1
        if words := special_words_in(line):
            self.num_marked += 1
            self._counts.update(words)

    def warn(self, what: str) -> None:
        if self.num_marked > MAX_MARKED_SHARE * self.num_lines:
            log.warning(
                "%d of %d %s hold special words of language models (%s), which are read as part of "
                "the text: leave them out, elmokit marks sentences and unknown words itself",
                self.num_marked, self.num_lines, what,
                ", ".join(f"{word} {count:,}" for word, count in self._counts.most_common(6)),
            )  # fmt: skip


def watched(sentences: Iterable[GivenSentenceT]) -> Iterator[GivenSentenceT]:
    """Yield sentences; warn at their end of special words in them."""
    special = SpecialWordCount()
    for sentence in sentences:
        yield sentence  # first: whoever reads it refuses what is no sentence
        special.add(sentence if isinstance(sentence, str) else " ".join(sentence))
    special.warn("sentences")
