"""Korean morphemes by Kiwi (extra ``ko``).

A token is a morpheme in Kiwi's normal form, not the letters of the text. Contracted syllables are
split: ``갔다`` is ``가 었 다``, ``예쁜`` is ``예쁘 ㄴ``, ``해줬다`` is ``하 어 주 었 다``. Endings
that begin with 아 or 어 are all written with 어 (``잡았다`` is ``잡 었 다``); other allomorphs,
such as 을 and 를, stay distinct. A final consonant that is a morpheme is a stand-alone letter
(``ㄴ``, not U+11AB). A word with old Hangul (conjoining jamo that form no modern syllable) stays
one token, since Kiwi would split it into letters. The text cannot be restored from the tokens. It
is composed (NFC) first, and lone surrogates are dropped.
"""

import ctypes
import functools
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from elmokit.errors import MissingExtraError, needs_extra
from elmokit.text.normalization import normalize
from elmokit.text.tokenizers.protocol import cut_long_text

_MAX_TEXT_CHARACTERS = 5000  # Kiwi's time grows faster than linearly beyond this
_TEXTS_A_BATCH = 512
_JAMO = (
    "\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff"  # conjoining: left after composition in old Hangul
)
_LETTER = r"[\w\u302e\u302f]"  # with tone marks
_OLD_HANGUL_WORD = re.compile(rf"{_LETTER}*[{_JAMO}]{_LETTER}*")
_FIND_OLD_HANGUL = re.compile(rf"(?<!{_LETTER}){_OLD_HANGUL_WORD.pattern}")
"""The same, in time that grows with the length of a text: only where a word begins."""

PlacedWord = tuple[str, int, int]


class KoreanTokenizer:
    """Morphemes and sentences by Kiwi, which each process loads on first use (2 s).

    A line break ends a sentence, and so does every 5,000th character of a line without an end.
    """

    name = "korean"

    def __init__(self) -> None:
        from importlib.metadata import version

        with needs_extra("ko", module="kiwipiepy"):
            self.version = f"2, kiwipiepy {version('kiwipiepy')}"

    def tokenize(self, sentence: str) -> list[str]:
        return [token for part in self.sentences(sentence) for token in part]

    def sentences(self, text: str) -> list[list[str]]:
        return [
            sentence
            for _, piece in _pieces(text)
            for sentence in self._sentences_of(piece, self._analyze(piece))
        ]

    def places(self, text: str) -> list[PlacedWord]:
        """Return the morphemes of a composed text with their places.

        Those that share a syllable overlap; what is not written (the 이 of ``거예요``) is empty.
        """
        return [
            (word, first + start, first + end)
            for first, piece in _pieces(text)
            for token in self._analyze(piece)
            for word, start, end in self._words_of(piece, token)
        ]

    def sentences_batch(self, texts: Iterable[str]) -> Iterator[list[list[str]]]:
        remaining = iter(texts)
        while batch := [_pieces(text) for text in itertools.islice(remaining, _TEXTS_A_BATCH)]:
            flat = [piece for pieces in batch for _, piece in pieces]
            analyzed = zip(flat, self._analyze(flat), strict=True)
            for pieces in batch:
                yield [
                    sentence
                    for piece, tokens in itertools.islice(analyzed, len(pieces))
                    for sentence in self._sentences_of(piece, tokens)
                ]

    def _analyze(self, pieces: str | list[str]) -> Any:
        # Kiwi would split old Hangul into letters, so such words are handed to it whole.
        text = pieces if isinstance(pieces, str) else " ".join(pieces)
        old = _FIND_OLD_HANGUL.search(text)
        words = {"pretokenized": _old_hangul_words} if old else {}
        return _kiwi(os.getpid()).tokenize(pieces, compatible_jamo=True, **words)

    def _sentences_of(self, piece: str, tokens: Iterable[Any]) -> Iterator[list[str]]:
        for _, of_sentence in itertools.groupby(tokens, key=lambda token: token.sent_position):
            words = [word for token in of_sentence for word, *_ in self._words_of(piece, token)]
            if words:
                yield words

    def _words_of(self, piece: str, token: Any) -> list[PlacedWord]:
        start, end = token.start, token.end
        if _OLD_HANGUL_WORD.fullmatch(piece, start, end):
            return [(piece[start:end], start, end)]
        return [(word, start, end) for word in token.form.split()]


def places_of_morphemes(words: Sequence[str], text: str) -> list[tuple[int, int]] | None:
    """Return ``[start, end)`` of each word, by splitting the text again.

    None if these are not its (first) morphemes, if it is decomposed, or without kiwipiepy.
    """
    tokenizer = _tokenizer_if_installed()
    if tokenizer is None or _encodable(text) != text:
        return None
    places = tokenizer.places(text)[: len(words)]
    is_same = [word for word, *_ in places] == list(words)
    return [(start, end) for _, start, end in places] if is_same else None


@functools.cache
def _tokenizer_if_installed() -> KoreanTokenizer | None:
    try:
        return KoreanTokenizer()
    except MissingExtraError:
        return None


def _encodable(text: str) -> str:
    return normalize(text, "NFC").encode("utf-16-le", "ignore").decode("utf-16-le")


def _pieces(text: str) -> list[tuple[int, str]]:
    """Split text into composed, encodable lines of bounded length for Kiwi, with their starts."""
    lines = _encodable(text).splitlines(keepends=True)
    starts = itertools.accumulate(map(len, lines), initial=0)
    found: list[tuple[int, str]] = []
    for line, start in zip(lines, starts, strict=False):
        (body,) = line.splitlines()
        for piece in cut_long_text(body, _MAX_TEXT_CHARACTERS):
            if piece and not piece.isspace():
                found.append((start, piece))
            start += len(piece)
    return found


def _old_hangul_words(text: str) -> list[tuple[int, int, str]]:
    return [(*match.span(), "NNP") for match in _FIND_OLD_HANGUL.finditer(text)]


@functools.cache
def _kiwi(process: int) -> Any:
    """Load Kiwi for a process: its threads do not survive a fork, and waiting for them hangs."""
    from kiwipiepy import Kiwi

    kiwi = Kiwi()
    if hasattr(os, "register_at_fork"):  # it must not be freed in a child, not even at its exit
        leak = functools.partial(ctypes.pythonapi.Py_IncRef, ctypes.py_object(kiwi))
        os.register_at_fork(after_in_child=leak)
    return kiwi
