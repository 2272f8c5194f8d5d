"""Words and spans of words in the text as it was written."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from elmokit.text.alignment import Offsets, align

Mark = tuple[int, int, str, str]
"""``[start, end)`` of a span in words, and what is put before and after it."""


class WrittenWords:
    """The words that a task read, and the raw text that they are from, or the words joined.

    ``offsets`` are those of `align`, None if the words cannot be found in the text. Characters
    ``without`` are marks of the text, which belong to no word.
    """

    def __init__(self, words: Sequence[str], text: str | None = None, *, without: str = "") -> None:
        self.words = words
        if text is None:
            self.text, self.offsets = joined(words)
            return
        self.text = text
        places = [i for i, character in enumerate(text) if character not in without]
        self.offsets = align(words, "".join(text[i] for i in places))
        if self.offsets is not None and without:
            ends = (*places, len(text))
            self.offsets = tuple(
                (ends[start], ends[end - 1] + 1 if start < end else ends[start])
                for start, end in self.offsets
            )

    def as_json(self) -> list[dict[str, Any]]:
        """Return each word's ``text``, as the model read it, and its place in characters."""
        return [{"text": word, **self.place(at, at + 1)} for at, word in enumerate(self.words)]

    def span(self, start: int, end: int) -> dict[str, Any]:
        """Return the text and place of a span of words, in characters and in words."""
        place = self.place(start, end)
        text = " ".join(self.words[start:end])
        if self.offsets is not None:
            text = self.text[place["start"] : place["end"]]
        return {"text": text, **place, "token_start": start, "token_end": end}

    def place(self, start: int, end: int) -> dict[str, int | None]:
        """Return the characters of a span of words."""
        if self.offsets is None:
            return {"start": None, "end": None}
        return {"start": self.offsets[start][0], "end": self.offsets[end - 1][1]}

    def each(self) -> list[str]:
        """Return the words as they are written, or as they were read if they share characters."""
        if self.offsets is None:
            return list(self.words)
        pairs = [(a, b) for a, b in pairwise(self.offsets) if b[0] < a[1] or a == b]
        shared = {place for pair in pairs for place in pair}
        return [
            self.text[start:end] if start < end and (start, end) not in shared else word
            for word, (start, end) in zip(self.words, self.offsets, strict=True)
        ]

    def marked(self, marks: Iterable[Mark]) -> str:
        """Return the text with marks around spans, which may contain one another."""
        text, offsets = self.text, self.offsets
        if offsets is None:
            text, offsets = joined(self.words)
        pieces: list[tuple[tuple[int, ...], str]] = []
        for start, end, opening, closing in marks:
            first, last = offsets[start][0], offsets[end - 1][1]
            # At one place, what ends comes before what begins; inner spans end first and begin
            # last. An empty span closes after it opens.
            pieces.append(((first, 1, -last, -end), opening))
            pieces.append(((last, 0, -first, -start) if first < last else (first, 2), closing))
        result, at = [], 0
        for (place, *_), piece in sorted(pieces, key=lambda piece: piece[0]):
            result += text[at:place], piece
            at = place
        return "".join((*result, text[at:]))


def joined(words: Sequence[str]) -> tuple[str, Offsets]:
    """Return words joined by spaces, and where they are in that text."""
    ends = accumulate(len(word) + 1 for word in words)
    offsets = tuple((end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True))
    return " ".join(words), offsets
