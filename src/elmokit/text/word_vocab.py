"""The words that the language model predicts: file and ids.

A vocabulary file has one word per line: ``<S>``, ``</S>`` and ``<UNK>`` (by convention first), then
the words by descending frequency, which the log-uniform sampler relies on. The id of a word is 1 +
its line index, so that 0 is padding; its softmax row is the line index, ``word_id - 1``.
"""

import os
import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import filterfalse
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.atomic import atomic_file
from elmokit.files.lines import MAX_WORD_LIST_BYTES, read_whole
from elmokit.files.sources import text_sha256
from elmokit.text.char_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD

UNKNOWN_WORD = "<UNK>"
SPECIAL_WORDS = (SENTENCE_BEGIN_WORD, SENTENCE_END_WORD, UNKNOWN_WORD)
NUM_LINES_MARKER = "!!!MAXTERMID"
"""A line of old vocabulary files that is not a word and has no id."""
_LINE = re.compile(r"[^\r\n\ud800-\udfff]+")  # surrogates have no UTF-8
_SURROGATE = re.compile(r"[\ud800-\udfff]")
COPY_AGAIN = "The file is damaged: copy the whole directory again."


class WordVocab:
    """Words, including specials, and their ids, in the order of the vocabulary file.

    `ValueError` for a missing special, a repeated word, or one that cannot be a line.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._id_of_word = {word: i for i, word in enumerate(self.words, start=1)}
        missing = [word for word in SPECIAL_WORDS if word not in self._id_of_word]
        if missing:
            raise ValueError(
                f"the vocabulary lacks {', '.join(missing)}: <S>, </S> and <UNK> (in upper case) "
                "should be its first three lines. `elmokit vocab` writes such a file."
            )
        if len(self._id_of_word) != len(self.words):
            word, count = Counter(self.words).most_common(1)[0]
            raise ValueError(
                f"the vocabulary has {count} lines {word!r}: every word must have only one. "
                "`elmokit vocab --check` lists all of them."
            )
        # one look at all words, which a large vocabulary nearly always passes, saves one at each
        lines = "\n".join(self.words)
        is_plain = lines.split() == list(self.words) and not _SURROGATE.search(lines)
        is_plain = is_plain and NUM_LINES_MARKER not in self._id_of_word
        unfit = None if is_plain else next(filterfalse(fits_a_line, self.words), None)
        if unfit is not None:
            raise ValueError(
                f"word {self._id_of_word[unfit]} of the vocabulary, {unfit!r}, cannot be a line of "
                "a file (empty, white space at its ends, a line break or a lone surrogate)."
            )
        self.sentence_begin_id = self._id_of_word[SENTENCE_BEGIN_WORD]
        self.sentence_end_id = self._id_of_word[SENTENCE_END_WORD]
        self.unknown_id = self._id_of_word[UNKNOWN_WORD]

    @classmethod
    def build(cls, counts: Iterable[tuple[str, int]]) -> "WordVocab":
        """Build a vocabulary from the specials and (word, count) pairs by descending count."""
        return cls([*SPECIAL_WORDS, *(word for word, _ in counts)])

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, advice: str | None = None) -> "WordVocab":
        """Read a file of one word per line; a line ``!!!MAXTERMID`` is skipped."""
        lines = read_all_lines(path, advice=advice)
        try:
            return cls([line for line in lines if line != NUM_LINES_MARKER])
        except ValueError as error:
            raise FormatError(f"{os.fspath(path)}: {error}") from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary file atomically."""
        with (
            atomic_file(path) as temp_path,
            temp_path.open("w", encoding="utf-8", newline="\n") as file,
        ):
            file.writelines(f"{word}\n" for word in self.words)

    def frequent_words(self) -> list[str]:
        """Return the words without the specials, by descending frequency."""
        return [word for word in self.words if word not in SPECIAL_WORDS]

    def __repr__(self) -> str:
        return f"WordVocab({len(self):,} words)"

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._id_of_word

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WordVocab) and self.words == other.words

    def __hash__(self) -> int:
        return hash(self.words)

    @property
    def sha256(self) -> str:
        """Hash of words and order."""
        return text_sha256("\n".join(self.words))

    def word_id(self, word: str) -> int:
        """Return the id of a word, ``unknown_id`` for unknown words."""
        return self._id_of_word.get(word, self.unknown_id)

    def encode(self, words: Sequence[str]) -> np.ndarray:
        """Return int64 ids (W,), ``unknown_id`` for unknown words."""
        find, unknown = self._id_of_word.get, self.unknown_id
        return np.fromiter((find(word, unknown) for word in words), np.int64, count=len(words))

    def decode(self, word_ids: Sequence[int] | np.ndarray) -> list[str]:
        """Return the words of ids; raise `ValueError` for ids outside 1..V (0 is padding)."""
        ids = np.asarray(word_ids, dtype=np.int64).reshape(-1)
        outside = ids[(ids < 1) | (ids > len(self))]
        if outside.size:
            raise ValueError(
                f"word id {outside[0]} has no word: ids are 1 to {len(self)}, and 0 is padding."
            )
        return [self.words[i - 1] for i in ids.tolist()]


def read_all_lines(path: str | os.PathLike[str], *, advice: str | None = None) -> list[str]:
    """Read the stripped lines of a vocabulary file, plain or compressed, as `WordVocab.read` does.

    A line of white space beyond ASCII, such as an ideographic space, is a word: the original reads
    it as the empty word, and the ids after it count it.
    """
    raw = read_whole(Path(path), MAX_WORD_LIST_BYTES)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"{os.fspath(path)}, line {line}: not UTF-8 ({error.reason}). "
            f"{advice or 'Convert the file: iconv -f ENCODING -t UTF-8.'}"
        ) from error
    words = text.removesuffix("\n").split("\n")
    if words != text.split():
        words = list(map(_stripped, words))
    if "" in words:
        raise FormatError(
            f"{os.fspath(path)}, line {words.index('') + 1}: blank. The id of a word is its line "
            "number: put the word that is missing there, or any that does not occur."
        )
    return words


def _stripped(line: str) -> str:
    return line.strip() or line.strip(string.whitespace)


def fits_a_line(word: str) -> bool:
    """Return whether a word can be a line of a vocabulary file."""
    is_line = _LINE.fullmatch(word) is not None and word != NUM_LINES_MARKER
    return is_line and word == (word.strip() or _stripped(word))
