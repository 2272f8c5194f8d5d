"""Words to rows of character ids: UTF-8 bytes between word boundaries, padded to a fixed length.

The 261 raw ids are 256 bytes and the five special characters below. elmokit uses raw id + 1
everywhere but in other file formats; id 0 marks a padded position of a sentence.

A row of C ids is ``[WORD_BEGIN, byte, ..., byte, WORD_END, CHAR_PADDING, ...]``; the sentence
boundaries are the words ``[WORD_BEGIN, SENTENCE_BEGIN, WORD_END, ...]`` and likewise for the end.
Source: bilm-tf ``data.py`` (``UnicodeCharsVocabulary``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from elmokit.errors import Bounds, CheckedFields
from elmokit.text.given_sentences import split_sentences
from elmokit.text.normalization import DEFAULT_NORMALIZATION, Normalization, normalize

SENTENCE_BEGIN, SENTENCE_END = 256, 257
WORD_BEGIN, WORD_END = 258, 259
CHAR_PADDING = 260
"""Raw id that fills the row of a word; an ordinary, trained character, not a padded position."""
NUM_RAW_CHARS = 261
DEFAULT_MAX_CHARACTERS = 50
MAX_CHARACTERS = 1000
NUM_CHARS = 262
"""Rows of the character embedding in elmokit: row 0 is the padded position."""

SENTENCE_BEGIN_WORD, SENTENCE_END_WORD = "<S>", "</S>"

Truncation = Literal["character", "byte"]


@dataclass(frozen=True, kw_only=True)
class CharVocabConfig(CheckedFields):
    """How words become rows of character ids; a model is bound to the values of its training."""

    max_characters: Annotated[int, Bounds(3, MAX_CHARACTERS)] = DEFAULT_MAX_CHARACTERS
    """C, the length of a row: two word boundaries and at most ``max_characters - 2`` bytes. The
    released models use 50; at most `MAX_CHARACTERS`."""
    normalization: Normalization = DEFAULT_NORMALIZATION
    """Profile applied to words, see `elmokit.text.normalization`."""
    truncation: Truncation = "character"
    """Where a longer word is cut: ``"character"`` keeps whole code points (a base letter may still
    lose its combining marks), ``"byte"`` cuts anywhere, as the original code does."""


class CharVocab:
    """Encode words as rows of character ids (raw id + 1, so that 0 is left for padded positions).

    Lone surrogates, which UTF-8 cannot encode, are dropped. An empty word is the two word
    boundaries alone. The words ``<S>`` and ``</S>`` get the rows of the sentence boundaries.
    """

    dtype: type[np.integer] = np.uint16
    padding_id = CHAR_PADDING + 1
    unit = "bytes"
    """What the rows are made of, for messages."""

    def __init__(self, config: CharVocabConfig = CharVocabConfig()) -> None:
        self.config = config
        self.sentence_begin, self.sentence_end = self._boundary_rows()

    def __repr__(self) -> str:
        return f"CharVocab({self.config})"

    @property
    def row_length(self) -> int:
        """Ids of a word."""
        return self.config.max_characters

    @property
    def max_bytes(self) -> int:
        """Bytes (`unit`) of a word that fit in a row."""
        return self.config.max_characters - 2

    def encode_word(self, word: str) -> np.ndarray:
        """Encode one word as uint16 ids (C,)."""
        return self.encode_words([word])[0]

    def encode_words(self, words: Sequence[str]) -> np.ndarray:
        """Encode words as uint16 ids (N, C)."""
        form = self.config.normalization
        whole = [normalize(word, form).encode("utf-8", "ignore") for word in words]
        encoded = [word if len(word) <= self.max_bytes else self._cut(word) for word in whole]
        num_words = len(encoded)
        lengths = np.fromiter(map(len, encoded), dtype=np.intp, count=num_words)
        flat = np.frombuffer(b"".join(encoded), dtype=np.uint8)

        # All bytes are written at once: a loop over words would take most of the time of `embed`.
        num_columns = self.config.max_characters
        rows = np.full((num_words, num_columns), CHAR_PADDING + 1, dtype=np.uint16)  # (N, C)
        rows[:, 0] = WORD_BEGIN + 1
        first_cell = np.arange(num_words) * num_columns + 1  # (N,) first byte of each word
        first_byte = np.cumsum(lengths) - lengths
        # Byte k of ``flat`` belongs to word w and goes to first_cell[w] + (k - first_byte[w]).
        cells = np.repeat(first_cell - first_byte, lengths) + np.arange(flat.size)
        rows.reshape(-1)[cells] = flat.astype(np.uint16) + 1
        rows.reshape(-1)[first_cell + lengths] = WORD_END + 1

        boundaries = {
            SENTENCE_BEGIN_WORD.encode(): self.sentence_begin,
            SENTENCE_END_WORD.encode(): self.sentence_end,
        }
        for i, word in enumerate(whole):  # normalized, as scores and the explorer read it
            if word in boundaries:
                rows[i] = boundaries[word]
        return rows

    def encode(self, sentences: Iterable[Sequence[str]], *, boundaries: bool = True) -> np.ndarray:
        """Encode lists of words as int64 ids (B, T, C), padded with 0 to the longest.

        ``boundaries`` puts ``<S>`` before and ``</S>`` after every sentence.
        """
        given = list(split_sentences(sentences, None))
        rows = self.encode_words([word for words in given for word in words])
        margin = int(boundaries)
        lengths = np.array([len(words) for words in given], dtype=np.intp)
        num_steps = lengths.max() + 2 * margin if lengths.size else 0
        shape = (len(given), num_steps, self.row_length)  # (B, T, C)
        char_ids = np.zeros(shape, dtype=np.int64)
        step = np.arange(num_steps)
        char_ids[(step >= margin) & (step < lengths[:, None] + margin)] = rows
        if boundaries and lengths.size:
            char_ids[:, 0] = self.sentence_begin
            char_ids[np.arange(lengths.size), lengths + 1] = self.sentence_end
        return char_ids

    def is_truncated(self, word: str) -> bool:
        """Return whether a word has more bytes than a row."""
        text = normalize(word, self.config.normalization)
        return len(text.encode("utf-8", "ignore")) > self.max_bytes

    def _boundary_rows(self) -> tuple[np.ndarray, np.ndarray]:
        rows = np.full((2, self.config.max_characters), CHAR_PADDING + 1, dtype=np.uint16)
        for row, raw_id in zip(rows, (SENTENCE_BEGIN, SENTENCE_END), strict=True):
            row[:3] = np.array([WORD_BEGIN, raw_id, WORD_END]) + 1
        rows.setflags(write=False)
        return rows[0], rows[1]

    def _cut(self, encoded: bytes) -> bytes:
        end = self.max_bytes
        if self.config.truncation == "character":
            while end and encoded[end] & 0xC0 == 0x80:  # continuation byte
                end -= 1
        return encoded[:end]
