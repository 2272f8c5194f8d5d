"""Words as they are typed, between spaces: the surprisals of their tokens are added."""

import math
import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from operator import attrgetter
from os import PathLike
from typing import Any, Literal

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
    index: int
    word: str
    start: int
    end: int
    num_tokens: int
    """Tokens that are counted; 0 if the tokenizer leaves the word out, or it is punctuation alone
    of which nothing is counted."""
    is_unknown: bool
    spelling: float | None
    """Bits of the spelling of unknown tokens, which the surprisals contain; none if they are scored
    as ``<UNK>``."""
    forward: float
    backward: float
    mean: float
    forward_entropy: float
    """Bits, before its first token is read."""
    backward_entropy: float
    """Bits, before its last token is read, from the end."""
    is_last: bool


def typed_words(
    model: LoadedBiLM | str | PathLike[str],
    sentences: Sequence[str],
    *,
    punctuation: Punctuation = "with-word",
    **options: Any,
) -> list[list[TypedWord]]:
    """Return surprisal and entropy of the typed words of every sentence.

    ``options`` are those of `surprisal`.
    """
    tokens: list[list[WordSurprisal]] = [[] for _ in sentences]
    for row in surprisal(model, sentences, **options):
        tokens[row.sentence].append(row)
    typed = []
    for text, parts in zip(sentences, tokens, strict=True):
        typed.append(typed_of(text, parts, punctuation))
        left_out = next((word.word for word in typed[-1] if word.num_tokens == 0), None)
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
            is_word = [not all(unicodedata.category(c)[0] == "P" for c in t.word) for t in own]
            counted = list(compress(own, is_word)) or own
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
    """The typed words of lines of text: `watched` passes these on to who scores their tokens."""

    def __init__(self, punctuation: Punctuation = "with-word") -> None:
        self._punctuation: Punctuation = punctuation
        self._lines: deque[TextLine] = deque()

    def watched(self, lines: Iterable[TextLine]) -> Iterator[TextLine]:
        for line in lines:
            self._lines.append(line)
            yield line

    def words(self, rows: Iterable[WordSurprisal]) -> Iterator[TypedWord]:
        for place, tokens in groupby(rows, key=attrgetter("file", "line")):
            line = self._lines.popleft()
            while (line.path and printable(line.path), line.number) != place:
                line = self._lines.popleft()
            yield from typed_of(line.text, tokens, self._punctuation)
