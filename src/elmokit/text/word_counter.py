"""Counting the words of a corpus in bounded memory; building a vocabulary."""

import heapq
import itertools
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import FormatError
from elmokit.files.atomic import named
from elmokit.files.temporary import scratch_directory
from elmokit.text.word_vocab import NUM_LINES_MARKER, SPECIAL_WORDS, WordVocab, fits_a_line

LOWER_CASE_UNKNOWN = "<unk>"
_SENTENCES_TOGETHER = 1000
_NEVER_COUNTED = frozenset({*SPECIAL_WORDS, LOWER_CASE_UNKNOWN, NUM_LINES_MARKER})


class WordCounter:
    """Counts words of a corpus of any length in bounded memory.

    Beyond ``max_distinct`` words (about 150 bytes each), sorted runs of counts go to a temporary
    directory, which the ``with`` statement removes. The specials, the lower-case
    ``<unk>`` of some corpora, and strings that cannot be a line of a vocabulary file have no count.
    """

    _MAX_RUNS = 64  # open files while merging

    def __init__(self, *, max_distinct: int = 1_000_000) -> None:
        self.max_distinct = max_distinct
        self.num_words = 0
        """Words added so far, including specials."""
        self._counts: Counter[str] = Counter()
        self._open = ExitStack()
        self._spill_dir: Path | None = None
        self._runs: list[Path] = []

    def __enter__(self) -> "WordCounter":
        return self

    def __exit__(self, *_: object) -> None:
        self._counts.clear()
        self._runs.clear()
        self._open.close()

    def add(self, words: Sequence[str]) -> None:
        self._counts.update(words)
        self.num_words += len(words)
        if len(self._counts) > self.max_distinct:
            self._spill()

    def add_counts(self, words: Sequence[str], counts: Sequence[int]) -> None:
        self._counts.update(dict(zip(words, counts, strict=True)))
        self.num_words += sum(counts)
        if len(self._counts) > self.max_distinct:
            self._spill()

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
        if not self._runs:
            return (pair for pair in self._counts.items() if _is_word(pair[0]))
        return _merge([*map(_read_run, self._runs), self._sorted_counts()])

    def _sorted_counts(self) -> Iterator[tuple[str, int]]:
        return iter(sorted(pair for pair in self._counts.items() if _is_word(pair[0])))

    def _spill(self) -> None:
        # All runs are open together while they are merged, and a process may open few files.
        if len(self._runs) >= self._MAX_RUNS:
            merged = self._write_run(_merge(list(map(_read_run, self._runs))))
            for run in self._runs:
                run.unlink()
            self._runs = [merged]
        self._runs.append(self._write_run(self._sorted_counts()))
        self._counts.clear()

    def _write_run(self, pairs: Iterable[tuple[str, int]]) -> Path:
        if self._spill_dir is None:
            self._spill_dir = self._open.enter_context(scratch_directory("elmokit-vocab"))
        path = self._spill_dir / f"run-{uuid.uuid4().hex}.txt"
        with named(path), path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{count} {word}\n" for word, count in pairs)
        return path


@dataclass(frozen=True)
class BuiltVocab:
    vocab: WordVocab
    num_sentences: int
    num_words: int
    coverage: float


def build_vocab(
    sentences: Iterable[Sequence[str]], *, max_size: int | None = None, min_count: int = 1
) -> BuiltVocab:
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
            f"No word occurs at least {min_count} times in this text, so the vocabulary would be "
            "empty. Give more text, or a lower minimum."
            if num_words else "There is no word in this text, so the vocabulary would be empty."
        )  # fmt: skip
    coverage = sum(count for _, count in counts) / num_words
    return BuiltVocab(WordVocab.build(counts), num_sentences, num_words, coverage)


def _is_word(word: str) -> bool:
    return word not in _NEVER_COUNTED and fits_a_line(word)


def _by_falling_count(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def _read_run(path: Path) -> Iterator[tuple[str, int]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            count, _, word = line.rstrip("\n").partition(" ")
            yield word, int(count)


def _merge(runs: list[Iterator[tuple[str, int]]]) -> Iterator[tuple[str, int]]:
    # Runs are sorted by word, so equal words of different runs come out next to each other.
    merged = heapq.merge(*runs, key=lambda pair: pair[0])
    for word, pairs in itertools.groupby(merged, key=lambda pair: pair[0]):
        yield word, sum(count for _, count in pairs)
