"""The words that the language model predicts: file, ids, counting.

A vocabulary file has one word a line and must hold ``<S>``, ``</S>`` and ``<UNK>`` (by convention
first), then the words by falling frequency, which the log-uniform sampler of the sampled softmax
relies on. The id of a word is 1 + its line index, so that 0 is padding; the softmax row of a word
is its line index, ``word_id - 1``. The words of the input need no vocabulary: they are spelled.
"""

import heapq
import itertools
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmokit.atomic import named, whole_file
from elmokit.errors import FormatError
from elmokit.text.char_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD

UNKNOWN_WORD = "<UNK>"
"""The target in place of a word that is not in the vocabulary."""
SPECIAL_WORDS = (SENTENCE_BEGIN_WORD, SENTENCE_END_WORD, UNKNOWN_WORD)
"""Words that every vocabulary has, in the order in which they are written."""
NUM_LINES_MARKER = "!!!MAXTERMID"
"""A line of old vocabulary files that is no word and takes no id."""

_NEVER_COUNTED = frozenset({*SPECIAL_WORDS, "<unk>", NUM_LINES_MARKER})


class WordVocab:
    """Words and their ids, in the order of the vocabulary file.

    Args:
        words: all lines, specials included.

    Raises:
        ValueError: for a missing special, a repeated word, or one that cannot be a line.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._id_of_word = {word: i for i, word in enumerate(self.words, start=1)}
        self._check()
        self.sentence_begin_id = self._id_of_word[SENTENCE_BEGIN_WORD]
        self.sentence_end_id = self._id_of_word[SENTENCE_END_WORD]
        self.unknown_id = self._id_of_word[UNKNOWN_WORD]

    @classmethod
    def build(cls, counts: Iterable[tuple[str, int]]) -> "WordVocab":
        """Make a vocabulary of counted words: the specials, then the words in the order given.

        Args:
            counts: (word, count) by falling count, as ``WordCounter.most_common`` returns them.
        """
        return cls([*SPECIAL_WORDS, *(word for word, _ in counts)])

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "WordVocab":
        """Read a vocabulary file: UTF-8, a word a line; a line ``!!!MAXTERMID`` is skipped.

        Raises:
            FormatError: if the file is not UTF-8, empty, has blank or repeated lines, or lacks a
                special word.
        """
        try:
            return cls(read_vocab_lines(path))
        except FormatError:
            raise
        except ValueError as error:
            raise FormatError(f"{os.fspath(path)}: {error}") from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary file; it appears whole or not at all."""
        with (
            whole_file(path) as aside,
            aside.open("w", encoding="utf-8", newline="\n") as file,
        ):
            file.writelines(f"{word}\n" for word in self.words)

    def __len__(self) -> int:
        """Return V, the number of lines: softmax classes, padding not counted."""
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        """Tell whether a word has a line of its own."""
        return word in self._id_of_word

    def __eq__(self, other: object) -> bool:
        """Compare words and order."""
        return isinstance(other, WordVocab) and self.words == other.words

    def __hash__(self) -> int:
        """Hash words and order."""
        return hash(self.words)

    def word_id(self, word: str) -> int:
        """Return the id of a word, ``unknown_id`` for a word without a line."""
        return self._id_of_word.get(word, self.unknown_id)

    def encode(self, words: Sequence[str]) -> np.ndarray:
        """Return the ids of words as int64 (W,); unknown words get ``unknown_id``."""
        find, unknown = self._id_of_word.get, self.unknown_id
        return np.fromiter((find(word, unknown) for word in words), np.int64, count=len(words))

    def decode(self, word_ids: Sequence[int] | np.ndarray) -> list[str]:
        """Return the words of ids.

        Raises:
            ValueError: for an id outside 1..V (0 is padding and has no word).
        """
        ids = np.asarray(word_ids, dtype=np.int64).reshape(-1)
        outside = ids[(ids < 1) | (ids > len(self))]
        if outside.size:
            raise ValueError(
                f"word id {outside[0]} has no word: ids of this vocabulary are 1 to {len(self)} "
                f"and 0 is padding. Remove padding before decoding."
            )
        return [self.words[i - 1] for i in ids.tolist()]

    def _check(self) -> None:
        missing = [word for word in SPECIAL_WORDS if word not in self._id_of_word]
        if missing:
            raise ValueError(
                f"the vocabulary lacks {', '.join(missing)}: it must hold <S>, </S> and <UNK> "
                f"exactly so (upper case), best as its first three lines. Add them, or write the "
                f"vocabulary with `elmokit vocab`."
            )
        if len(self._id_of_word) != len(self.words):
            word, count = Counter(self.words).most_common(1)[0]
            raise ValueError(
                f"the vocabulary has {count} lines {word!r}: every word must have one line. "
                f"`elmokit vocab --check` lists all of them."
            )
        for i, word in enumerate(self.words, start=1):
            if not _fits_a_line(word):
                raise ValueError(
                    f"word {i} of the vocabulary, {word!r}, cannot be a line of a file: words must "
                    f"not be empty, begin or end with white space, hold a line break or a lone "
                    f"surrogate, or be {NUM_LINES_MARKER}."
                )


class WordCounter:
    """Count words of a corpus of any length in bounded memory.

    Up to ``max_distinct`` words are counted in memory; beyond that the counts go to a temporary
    directory as sorted runs, merged when asked for. The specials, the lower-case ``<unk>`` of some
    corpora, and strings that cannot be a line of a vocabulary file are not counted as words.

    Args:
        max_distinct: distinct words held in memory (about 150 bytes each).

    Use it in a ``with`` statement, or call ``close``, so that the temporary directory goes away.
    """

    _MAX_RUNS = 64  # open files while merging

    def __init__(self, *, max_distinct: int = 1_000_000) -> None:
        if max_distinct < 1:
            raise ValueError(f"`max_distinct` must be at least 1, got {max_distinct}.")
        self.max_distinct = max_distinct
        self.num_words = 0
        """Words added so far, specials included."""
        self._counts: Counter[str] = Counter()
        self._spill_dir: tempfile.TemporaryDirectory[str] | None = None
        self._runs: list[Path] = []
        self._num_runs_written = 0

    def __enter__(self) -> "WordCounter":
        """Return the counter itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the temporary files."""
        self.close()

    def add(self, words: Sequence[str]) -> None:
        """Count the words of a sentence."""
        self._counts.update(words)
        self.num_words += len(words)
        if len(self._counts) > self.max_distinct:
            self._spill()

    def most_common(
        self, *, max_size: int | None = None, min_count: int = 1
    ) -> list[tuple[str, int]]:
        """Return the frequent words by falling count, equal counts in code point order.

        Args:
            max_size: keep at most this many words (the specials are not among them).
            min_count: leave out words seen less often.

        Returns:
            (word, count) pairs.
        """
        if max_size is not None and max_size < 0:
            raise ValueError(f"`max_size` must not be negative, got {max_size}.")
        frequent = (pair for pair in self.totals() if pair[1] >= min_count)
        if max_size is None:
            return sorted(frequent, key=_by_falling_count)
        return heapq.nsmallest(max_size, frequent, key=_by_falling_count)

    def totals(self) -> Iterator[tuple[str, int]]:
        """Yield every distinct word with its count, in no order that means anything."""
        if not self._runs:
            return (pair for pair in self._counts.items() if _is_word(pair[0]))
        return _merge([*map(_read_run, self._runs), self._sorted_counts()])

    def close(self) -> None:
        """Forget all counts and remove the temporary files."""
        self._counts.clear()
        self._runs.clear()
        if self._spill_dir is not None:
            self._spill_dir.cleanup()
            self._spill_dir = None

    def _sorted_counts(self) -> Iterator[tuple[str, int]]:
        return iter(sorted(pair for pair in self._counts.items() if _is_word(pair[0])))

    def _spill(self) -> None:
        if len(self._runs) >= self._MAX_RUNS:
            merged = self._write_run(_merge(list(map(_read_run, self._runs))))
            for run in self._runs:
                run.unlink()
            self._runs = [merged]
        self._runs.append(self._write_run(self._sorted_counts()))
        self._counts.clear()

    def _write_run(self, pairs: Iterable[tuple[str, int]]) -> Path:
        if self._spill_dir is None:
            self._spill_dir = tempfile.TemporaryDirectory(prefix="elmokit-vocab-")
        path = Path(self._spill_dir.name) / f"run-{self._num_runs_written:06d}.txt"
        self._num_runs_written += 1
        with named(path), path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{count} {word}\n" for word, count in pairs)
        return path


@dataclass(frozen=True)
class BuiltVocab:
    """A vocabulary and what it was made of."""

    vocab: WordVocab
    num_sentences: int
    """Sentences of the corpus."""
    num_words: int
    """Words of the corpus."""
    coverage: float
    """Share of the corpus' words that have a line of their own (1.0 for an empty corpus)."""


def build_vocab(
    sentences: Iterable[Sequence[str]], *, max_size: int | None = None, min_count: int = 1
) -> BuiltVocab:
    """Count the words of a corpus and keep the frequent ones.

    Args:
        sentences: tokenized sentences; read once.
        max_size: keep at most this many words besides the three specials.
        min_count: leave out words seen less often.

    Returns:
        The vocabulary, by falling frequency, with the corpus' size and its coverage.
    """
    num_sentences = 0
    with WordCounter() as counter:
        for sentence in sentences:
            counter.add(sentence)
            num_sentences += 1
        counts = counter.most_common(max_size=max_size, min_count=min_count)
        num_words = counter.num_words
    num_covered = sum(count for _, count in counts)
    return BuiltVocab(
        vocab=WordVocab.build(counts),
        num_sentences=num_sentences,
        num_words=num_words,
        coverage=num_covered / num_words if num_words else 1.0,
    )


def read_vocab_lines(path: str | os.PathLike[str]) -> list[str]:
    """Read the lines of a vocabulary file, specials and duplicates as they stand.

    Args:
        path: a UTF-8 file with one word a line.

    Returns:
        The words, stripped; ``!!!MAXTERMID`` is left out.

    Raises:
        FileNotFoundError: if there is no such file.
        FormatError: if the file is empty, not UTF-8, or has a blank line.
    """
    if not Path(path).exists():
        raise FileNotFoundError(
            f"There is no vocabulary {os.fspath(path)}: a file with a word a line is expected. "
            "`elmokit vocab CORPUS -o FILE` writes one."
        )
    data = Path(path).read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"{os.fspath(path)}, line {line}: not UTF-8 ({error.reason}). Convert the file, "
            f"for example with `iconv -f CP949 -t UTF-8`."
        ) from error
    words = [line.strip() for line in text.removesuffix("\n").split("\n")]
    if words == [""]:
        raise FormatError(f"{os.fspath(path)}: the vocabulary is empty. One word a line is needed.")
    if "" in words:
        raise FormatError(
            f"{os.fspath(path)}, line {words.index('') + 1}: blank line. The id of a word is the "
            f"number of its line, so every line must hold a word. Remove blank lines."
        )
    return [word for word in words if word != NUM_LINES_MARKER]


def _fits_a_line(word: str) -> bool:
    if word.isascii() and word.isprintable():  # nearly all words: no line breaks, no surrogates
        return bool(word) and word == word.strip() and word != NUM_LINES_MARKER
    return (
        bool(word)
        and word == word.strip()
        and "\n" not in word
        and "\r" not in word
        and len(word.encode("utf-8", "ignore")) == len(word.encode("utf-8", "surrogatepass"))
    )


def _is_word(word: str) -> bool:
    return word not in _NEVER_COUNTED and _fits_a_line(word)


def _by_falling_count(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def _read_run(path: Path) -> Iterator[tuple[str, int]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            count, _, word = line.rstrip("\n").partition(" ")
            yield word, int(count)


def _merge(runs: list[Iterator[tuple[str, int]]]) -> Iterator[tuple[str, int]]:
    merged = heapq.merge(*runs, key=lambda pair: pair[0])
    for word, pairs in itertools.groupby(merged, key=lambda pair: pair[0]):
        yield word, sum(count for _, count in pairs)
