"""Words as they are typed, between spaces: the surprisals of their tokens are added."""

import math
import re
import unicodedata
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from os import PathLike
from typing import Literal

import numpy as np

from elmokit.corpus.readers import TextLine
from elmokit.errors import InputError
from elmokit.evaluation.surprisal import WordSurprisal, surprisal
from elmokit.weights.stored_bilm import LoadedBiLM
from elmokit.wording import printable, shown

Punctuation = Literal["with-word", "drop"]
"""Whether a token of punctuation alone counts with the typed word that it stands at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TypedWord:
    """A word between spaces, as readers saw it; the first fields are those of `WordSurprisal`."""

    file: str | None
    line: int | None
    sentence: int | None
    """None for a word without tokens."""
    index: int
    """Index in the text: the line, or the sentence given."""
    word: str
    start: int
    end: int
    num_tokens: int
    """Tokens that are counted; 0 if the tokenizer leaves the word out, or it is punctuation alone
    of which nothing is counted."""
    is_unknown: bool
    """Whether one of its tokens is outside the vocabulary."""
    spelling: float | None
    """Bits of the spelling of unknown tokens, which the surprisals contain; none if they are scored
    as ``<UNK>``."""
    forward: float
    """Surprisal in bits: the sum of its tokens."""
    backward: float
    mean: float
    forward_entropy: float
    """Bits, before its first token is read."""
    backward_entropy: float
    """Bits, before its last token is read, from the end."""
    is_last: bool
    """Whether it ends its text."""


def typed_words(
    model: LoadedBiLM | str | PathLike[str],
    sentences: Sequence[str],
    *,
    items: Sequence[Hashable] | None = None,
    punctuation: Punctuation = "with-word",
    state: str = "warm",
    precision: str = "auto",
    unknown: str = "auto",
) -> list[list[TypedWord]]:
    """Return surprisal and entropy of the typed words of every sentence.

    ``items`` and the options are those of `surprisal`.

    Raises:
        InputError: if the tokenizer leaves out a typed word.
    """
    tokens: list[list[WordSurprisal]] = [[] for _ in sentences]
    rows = surprisal(
        model, sentences, items=items, state=state, precision=precision, unknown=unknown
    )
    for row in rows:
        tokens[row.sentence].append(row)
    typed = [
        typed_of(text, parts, punctuation) for text, parts in zip(sentences, tokens, strict=True)
    ]
    for words, text in zip(typed, sentences, strict=True):
        left_out = next((word.word for word in words if word.num_tokens == 0), None)
        if left_out is not None:
            raise InputError(f"The tokenizer makes no token of {shown(left_out)} in {shown(text)}.")
    return typed


def typed_of(
    text: str, tokens: Iterable[WordSurprisal], punctuation: Punctuation = "with-word"
) -> list[TypedWord]:
    """Return the typed words of a text, of whose tokens the rows are given."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    begins = np.array([begin for begin, _ in spans])
    parts: list[list[WordSurprisal]] = [[] for _ in spans]
    for token in tokens:
        if token.start is not None:  # sentence ends have no place in the text
            owner = int(np.searchsorted(begins, token.start, side="right")) - 1
            parts[max(0, owner)].append(token)
    typed = []
    for index, ((start, end), own) in enumerate(zip(spans, parts, strict=True)):
        counted = own
        if punctuation == "drop":
            counted = [token for token in own if not _is_punctuation(token.word)] or own
        forward = sum(token.forward for token in counted)
        backward = sum(token.backward for token in counted)
        spellings = [token.spelling for token in counted if token.spelling is not None]
        typed.append(
            TypedWord(
                file=own[0].file if own else None, line=own[0].line if own else None,
                sentence=own[0].sentence if own else None, index=index, word=text[start:end],
                start=start, end=end, num_tokens=len(counted),
                is_unknown=any(token.is_unknown for token in counted),
                spelling=sum(spellings) if spellings else None,
                forward=forward, backward=backward, mean=(forward + backward) / 2,
                forward_entropy=counted[0].forward_entropy if counted else math.nan,
                backward_entropy=counted[-1].backward_entropy if counted else math.nan,
                is_last=index == len(spans) - 1,
            )
        )  # fmt: skip
    return typed


class TypedLines:
    """The typed words of lines of text, whose tokens are scored elsewhere.

    `watched` passes the lines on to who scores them; `words` takes the rows that come of it.
    """

    def __init__(self, punctuation: Punctuation = "with-word") -> None:
        self._punctuation: Punctuation = punctuation
        self._lines: deque[TextLine] = deque()

    def watched(self, lines: Iterable[TextLine]) -> Iterator[TextLine]:
        """Yield the lines and remember them."""
        for line in lines:
            self._lines.append(line)
            yield line

    def words(self, rows: Iterable[WordSurprisal]) -> Iterator[TypedWord]:
        """Yield the typed words of every line that has tokens."""
        for place, tokens in groupby(rows, key=attrgetter("file", "line")):
            line = self._lines.popleft()
            while (line.path and printable(line.path), line.number) != place:
                line = self._lines.popleft()
            yield from typed_of(line.text, tokens, self._punctuation)


def _is_punctuation(text: str) -> bool:
    return all(unicodedata.category(sign).startswith("P") for sign in text)
