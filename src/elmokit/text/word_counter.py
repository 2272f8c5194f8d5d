"""Counting the words of a corpus in bounded memory; building a vocabulary."""

import errno
import heapq
import itertools
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from elmokit.errors import FormatError
from elmokit.text.word_vocab import NUM_LINES_MARKER, SPECIAL_WORDS, WordVocab, fits_a_line

LOWER_CASE_UNKNOWN = "<unk>"
_SENTENCES_TOGETHER = 1000
_NEVER_COUNTED = frozenset({*SPECIAL_WORDS, LOWER_CASE_UNKNOWN, NUM_LINES_MARKER})


class WordCounter:
    """Counts words of a corpus of any length in bounded memory.

    Beyond ``max_distinct`` words (about 150 bytes each), counts go to a temporary database, which
    the ``with`` statement removes. The specials, the lower-case ``<unk>`` of some corpora, and
    strings that cannot be a line of a vocabulary file have no count.
    """

    def __init__(self, *, max_distinct: int = 1_000_000) -> None:
        self.max_distinct = max_distinct
        self.num_words = 0
        """Words added so far, including specials."""
        self._counts: Counter[str] = Counter()
        self._stored: sqlite3.Connection | None = None

    def __enter__(self) -> "WordCounter":
        return self

    def __exit__(self, *_: object) -> None:
        self._counts.clear()
        if self._stored is not None:
            self._stored.close()

    def add(self, words: Sequence[str]) -> None:
        """Count the words of a sentence."""
        self._counts.update(words)
        self.num_words += len(words)
        self._limit()

    def add_counts(self, words: Sequence[str], counts: Sequence[int]) -> None:
        """Count words that occur so often."""
        self._counts.update(dict(zip(words, counts, strict=True)))
        self.num_words += sum(counts)
        self._limit()

    def most_common(
        self, *, max_size: int | None = None, min_count: int = 1
    ) -> list[tuple[str, int]]:
        """Return (word, count) pairs by descending count, equal counts in code point order."""
        frequent = (pair for pair in self.totals() if pair[1] >= min_count)
        if max_size is None:
            return sorted(frequent, key=_by_falling_count)
        return heapq.nsmallest(max_size, frequent, key=_by_falling_count)

    def totals(self) -> Iterator[tuple[str, int]]:
        """Yield every distinct word with its count, in arbitrary order."""
        if self._stored is None:
            return (pair for pair in self._counts.items() if _is_word(pair[0]))
        return self._store().execute("SELECT word, count FROM counts")

    def _limit(self) -> None:
        if len(self._counts) > self.max_distinct:
            self._store()

    def _store(self) -> sqlite3.Connection:
        if self._stored is None:
            # without a name the database is a file that is gone with the connection
            self._stored = sqlite3.connect("", check_same_thread=False)
            self._stored.executescript(
                "PRAGMA journal_mode = OFF; PRAGMA cache_size = -65536;"  # 64 MB
                "CREATE TABLE counts (word TEXT PRIMARY KEY, count INTEGER) WITHOUT ROWID;"
            )
        try:
            self._stored.executemany(
                "INSERT INTO counts VALUES (?, ?)"
                " ON CONFLICT (word) DO UPDATE SET count = count + excluded.count",
                sorted(pair for pair in self._counts.items() if _is_word(pair[0])),
            )
        except sqlite3.OperationalError as error:
            raise OSError(
                errno.ENOSPC, f"{error}: counts of words", tempfile.gettempdir()
            ) from error
        self._counts.clear()
        return self._stored


@dataclass(frozen=True)
class BuiltVocab:
    """A vocabulary and the size of its corpus."""

    vocab: WordVocab
    num_sentences: int
    num_words: int
    coverage: float


def build_vocab(
    sentences: Iterable[Sequence[str]], *, max_size: int | None = None, min_count: int = 1
) -> BuiltVocab:
    """Count the words of a corpus and keep the frequent ones, ``max_size`` without specials."""
    num_sentences, remaining = 0, iter(sentences)
    with WordCounter() as counter:
        # Counting many sentences at a time saves a fifth of the time of a whole command.
        while batch := list(itertools.islice(remaining, _SENTENCES_TOGETHER)):
            counter.add(list(itertools.chain.from_iterable(batch)))
            num_sentences += len(batch)
        counts = counter.most_common(max_size=max_size, min_count=min_count)
        num_words = counter.num_words
    if not counts:
        raise FormatError(
            f"There is no word in this text that occurs {min_count} times or more, so the "
            "vocabulary would be empty. Give more text, or a lower minimum."
        )
    coverage = sum(count for _, count in counts) / num_words
    return BuiltVocab(WordVocab.build(counts), num_sentences, num_words, coverage)


def _is_word(word: str) -> bool:
    return word not in _NEVER_COUNTED and fits_a_line(word)


def _by_falling_count(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]
