"""Sentences as users give them: strings, or lists of words; special words in them.

The same rule everywhere: the model's own tokenizer splits a string; in a list every string is one
word; one string where a list of sentences belongs is refused.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from elmokit.errors import InputError

GivenSentence = str | Sequence[str]
Tokenize = Callable[[str], list[str]]


def check_text(text: str, *, where: str) -> None:
    if "\0" in text:
        raise InputError(f"{where} holds a NUL character at position {text.index(chr(0))}.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where} holds {text[error.start]!r} at position {error.start}, a lone surrogate."
        ) from error


def split_sentences(
    sentences: Iterable[GivenSentence],
    tokenize: Tokenize | None,
    *,
    on_words: Callable[[list[str]], object] | None = None,
) -> Iterator[list[str]]:
    """Yield the words of every sentence; without ``tokenize`` strings are refused.

    ``on_words`` is called with every list of words that was given.
    """
    check_is_list(sentences)
    return (
        split_sentence(sentence, tokenize, where=f"sentence {i}", on_words=on_words)
        for i, sentence in enumerate(sentences)
    )


def check_is_list(sentences: object, *, name: str = "sentences") -> None:
    if isinstance(sentences, str | bytes):
        raise TypeError(
            f"`{name}` must be a list, got one string: {sentences!r:.60}. Put it in a list: "
            '["I sat by the bank ."].'
        )


def split_sentence(
    sentence: object,
    tokenize: Tokenize | None,
    *,
    where: str,
    on_words: Callable[[list[str]], object] | None = None,
) -> list[str]:
    if isinstance(sentence, str):
        if tokenize is None:
            raise TypeError(
                f"{where} is the string {sentence[:40]!r}: give a list of words. `Embedder.embed` "
                "splits strings."
            )
        check_text(sentence, where=where)
        return tokenize(sentence)
    parts = list(sentence) if isinstance(sentence, Iterable) else [sentence]
    words = [part for part in parts if isinstance(part, str)]
    if len(words) < len(parts):
        wrong = next(part for part in parts if not isinstance(part, str))
        raise TypeError(
            f"{where} must be a string or a list of words, got {sentence!r:.60} with {wrong!r:.60} "
            f"of type {type(wrong).__name__}."
        )
    if on_words is not None:
        on_words(words)
    return words


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
