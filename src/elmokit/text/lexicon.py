"""Words to rows of character ids and a word id, by lists of characters and words.

Models of ELMoForManyLangs read code points that they have a list of, not bytes, and a vector of the
whole word beside them. A row of C + 1 ids is ``[WORD_BEGIN, character, ..., WORD_END, PADDING,
...]`` and the word's id last. Special ids are the same in all models; id 0 marks a padded position.

As in the original, a word is cut to C - 2 code points before it is looked up.
Source: ELMoForManyLangs, ``create_one_batch``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from elmokit.errors import Bounds, CheckedFields, FormatError
from elmokit.files.json_files import json_bytes, parse_json
from elmokit.files.lines import MAX_WORD_LIST_BYTES, read_bounded
from elmokit.files.sources import text_sha256
from elmokit.text.char_vocab import (
    SENTENCE_BEGIN_WORD,
    SENTENCE_END_WORD,
    CharVocab,
    CharVocabConfig,
)
from elmokit.text.normalization import normalize

PADDING, WORD_BEGIN, WORD_END, SENTENCE_BEGIN, SENTENCE_END, UNKNOWN = range(1, 7)
"""Ids of the special characters; those of the list follow."""
SPECIAL_CHARACTERS = ("<pad>", "<bow>", "<eow>", "<bos>", "<eos>", "<oov>")
SPECIAL_WORDS = ("<oov>", "<bos>", "<eos>", "<pad>")


@dataclass(frozen=True, kw_only=True)
class LexiconConfig(CheckedFields):
    """Sizes of the two lists, specials not counted, and which lists they are."""

    num_characters: Annotated[int, Bounds(0, 60_000)]
    num_words: Annotated[int, Bounds(0, 10**8)]
    word_dim: Annotated[int, Bounds(1, 1 << 16)]
    sha256: str
    """Hash of both lists."""

    @property
    def character_rows(self) -> int:
        """Rows of the character embedding."""
        return 1 + len(SPECIAL_CHARACTERS) + self.num_characters

    @property
    def word_rows(self) -> int:
        """Rows of the word embedding."""
        return 1 + len(SPECIAL_WORDS) + self.num_words


@dataclass(frozen=True)
class Lexicon:
    """The characters and words that a model knows, in the order of their ids."""

    characters: tuple[str, ...]
    words: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> "Lexicon":
        """Read the file; `FormatError` if it is damaged."""
        advice, keys = "Copy the whole model directory again.", ("characters", "words")
        content = read_bounded(path, MAX_WORD_LIST_BYTES)
        lists = parse_json(content, source=path, advice=advice, required=keys)
        for key in keys:
            if not isinstance(lists[key], list) or not all(isinstance(x, str) for x in lists[key]):
                raise FormatError(f"{path}: `{key}` must be a list of strings. {advice}")
        return cls(*(tuple(lists[key]) for key in keys))

    def to_bytes(self) -> bytes:
        """Return the contents of the file."""
        return json_bytes({"characters": self.characters, "words": self.words}, indent=0)

    def config(self, *, word_dim: int) -> LexiconConfig:
        """Return what a model's configuration says of the lists."""
        return LexiconConfig(
            num_characters=len(self.characters),
            num_words=len(self.words),
            word_dim=word_dim,
            sha256=text_sha256("\n".join((*self.characters, "", *self.words))),
        )


class LexiconVocab(CharVocab):
    """Encode words as rows of ids by a `Lexicon`.

    The words ``<S>`` and ``</S>``, and ``<bos>`` and ``<eos>``, get the sentence boundaries.
    """

    dtype = np.int32
    padding_id = PADDING
    unit = "characters"

    def __init__(self, config: CharVocabConfig, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        first = len(SPECIAL_CHARACTERS) + 1
        self._characters = {char: i for i, char in enumerate(lexicon.characters, start=first)}
        words = (*SPECIAL_WORDS, *lexicon.words)
        self._words = {word: i for i, word in enumerate(words, start=1)}
        super().__init__(config)

    @property
    def row_length(self) -> int:
        """Ids of a word."""
        return self.config.max_characters + 1

    def encode_words(self, words: Sequence[str]) -> np.ndarray:
        """Encode words as int32 ids (N, C + 1)."""
        rows = np.full((len(words), self.row_length), PADDING, dtype=np.int32)
        boundaries = {
            SENTENCE_BEGIN_WORD: self.sentence_begin, "<bos>": self.sentence_begin,
            SENTENCE_END_WORD: self.sentence_end, "<eos>": self.sentence_end,
        }  # fmt: skip
        find, unknown_word = self._characters.get, self._words["<oov>"]
        for row, raw in zip(rows, words, strict=True):
            normalized = normalize(raw, self.config.normalization)
            if normalized in boundaries:
                row[:] = boundaries[normalized]
                continue
            # The word is looked up as it was cut: the original knows it by no other form.
            word = normalized[: self.max_bytes]
            row[0], row[len(word) + 1] = WORD_BEGIN, WORD_END
            row[1 : len(word) + 1] = [find(char, UNKNOWN) for char in word]
            row[-1] = self._words.get(word, unknown_word)
        return rows

    def is_truncated(self, word: str) -> bool:
        """Return whether a word has more code points than a row."""
        return len(normalize(word, self.config.normalization)) > self.max_bytes

    def _boundary_rows(self) -> tuple[np.ndarray, np.ndarray]:
        rows = np.full((2, self.row_length), PADDING, dtype=np.int32)
        rows[:, 0], rows[:, 2] = WORD_BEGIN, WORD_END
        rows[:, 1] = SENTENCE_BEGIN, SENTENCE_END
        rows[:, -1] = self._words["<bos>"], self._words["<eos>"]
        rows.setflags(write=False)
        return rows[0], rows[1]
