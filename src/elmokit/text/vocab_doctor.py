"""Checks of a vocabulary file, and of how well it fits a corpus.

They look for mistakes that make training fail silently: missing specials, duplicate words, lines
not sorted by frequency (which the sampled softmax assumes).
"""

import heapq
import logging
import os
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

import numpy as np

from elmokit.errors import FormatError, counted, shown
from elmokit.text.char_vocab import CharVocab
from elmokit.text.word_counter import WordCounter
from elmokit.text.word_vocab import NUM_LINES_MARKER, SPECIAL_WORDS, WordVocab, read_all_lines

log = logging.getLogger(__name__)

MIN_KNOWN = 0.3
"""Share of the words below which a vocabulary cannot be that of a text: a hundred frequent words
make up half of any text in their language and spelling."""
_MIN_RANK_CORRELATION = 0.15  # sorted by counts of another text: 0.3 or more; alphabetically: ~0
_MIN_RANKED_WORDS = 100  # fewer say little about the order
_NUM_EXAMPLES = 10
_NUM_MOST_FREQUENT = 100
_MIN_FREQUENT = 100  # rarer words say nothing about the tokenizer
_MAX_SAMPLE = 5000  # words that show the language of a text
_HANGUL = re.compile("[가-힣]")


@dataclass(frozen=True)
class CorpusFit:
    """How a vocabulary fits a corpus. Examples are the most frequent words, with counts."""

    num_sentences: int
    num_words: int
    coverage: float
    """Share of the corpus words that are in the vocabulary; the others become ``<UNK>``."""
    num_unseen: int
    """Words of the vocabulary that are not in the corpus."""
    rank_correlation: float
    """Spearman's, of line and rank by count; 1 = sorted by falling count."""
    frequent_unknown: tuple[tuple[str, int], ...]
    num_truncated: int


@dataclass(frozen=True)
class VocabReport:
    """Findings of `check_vocab`; tuples of words are examples."""

    path: str
    num_words: int
    """Including specials."""
    special_lines: dict[str, int | None]
    """Line of each special, from 1."""
    max_bytes: int
    """Bytes of a word that the model sees."""
    num_truncated: int
    truncated: tuple[str, ...]
    corpus: CorpusFit | None
    errors: tuple[str, ...]
    """Why training refuses this file, if it does."""
    warnings: tuple[str, ...]


def check_vocab(
    path: str | os.PathLike[str],
    sentences: Iterable[Sequence[str]] | None = None,
    *,
    char_vocab: CharVocab | None = None,
) -> VocabReport:
    """Examine a vocabulary file, and its fit to a tokenized corpus, which is read once.

    ``char_vocab`` has the character limit and normalization of the model.
    """
    char_vocab = CharVocab() if char_vocab is None else char_vocab
    lines_of_word: dict[str, list[int]] = {}
    for line, word in enumerate(read_all_lines(path), 1):
        if word != NUM_LINES_MARKER:
            lines_of_word.setdefault(word, []).append(line)
    special_lines = {word: lines_of_word.get(word, [None])[0] for word in SPECIAL_WORDS}
    ordinary = [word for word in lines_of_word if word not in SPECIAL_WORDS]
    truncated = [word for word in ordinary if char_vocab.is_truncated(word)]
    repeated = [word for word, lines in lines_of_word.items() if len(lines) > 1]
    missing = [word for word, line in special_lines.items() if line is None]
    late = [word for word, line in special_lines.items() if line is not None and line > 3]
    errors = [f"{word} is missing: add the line (one of the first three)" for word in missing]
    warnings = []
    if repeated:
        numbers = ", ".join(map(str, lines_of_word[repeated[0]]))
        count = counted(len(repeated), "repeated word")
        errors.append(f"{count}, such as {repeated[0]!r} (lines {numbers}): keep the first.")
    if late:
        warnings.append(
            f"{', '.join(late)} not among the first three lines: the sampler takes the first lines "
            "for the most frequent words."
        )
    fit = None if sentences is None else _fit(ordinary, sentences, char_vocab)
    if fit is not None:
        if fit.coverage < MIN_KNOWN:
            errors.append(_unfit(1 - fit.coverage, fit.frequent_unknown, lines_of_word))
        is_ranked = len(ordinary) - fit.num_unseen >= _MIN_RANKED_WORDS
        if is_ranked and fit.rank_correlation < _MIN_RANK_CORRELATION:
            warnings.append(
                f"the words are not sorted by frequency (rank correlation "
                f"{fit.rank_correlation:.2f}), which the sampled softmax takes for granted."
            )
    return VocabReport(
        path=os.fspath(path), num_words=sum(map(len, lines_of_word.values())),
        special_lines=special_lines, max_bytes=char_vocab.max_bytes,
        num_truncated=len(truncated), truncated=tuple(truncated[:_NUM_EXAMPLES]),
        corpus=fit, errors=tuple(errors), warnings=tuple(warnings),
    )  # fmt: skip


def _fit(words: list[str], sentences: Iterable[Sequence[str]], char_vocab: CharVocab) -> CorpusFit:
    counts = dict.fromkeys(words, 0)
    num_sentences = num_truncated = 0
    with WordCounter() as counter:
        for sentence in sentences:
            counter.add(sentence)
            num_sentences += 1
        num_words = counter.num_words
        for word, count in counter.totals():
            num_truncated += count * char_vocab.is_truncated(word)
            if word in counts:
                counts[word] = count
        frequent_unknown = _frequent_unknown(counter, counts)
    by_line = np.fromiter(counts.values(), dtype=np.int64, count=len(counts))
    return CorpusFit(
        num_sentences=num_sentences, num_words=num_words,
        coverage=int(by_line.sum()) / num_words if num_words else 1.0,
        num_unseen=int((by_line == 0).sum()),
        rank_correlation=_rank_correlation(by_line[by_line > 0]),
        frequent_unknown=tuple(frequent_unknown), num_truncated=num_truncated,
    )  # fmt: skip


def _frequent_unknown(counter: WordCounter, known: Container[str]) -> list[tuple[str, int]]:
    """Return the most frequent words that are not known; the counts may be on disk."""
    unknown = (pair for pair in counter.totals() if pair[0] not in known)
    return heapq.nlargest(_NUM_EXAMPLES, unknown, key=itemgetter(1))


def check_fit(vocab: WordVocab, counter: WordCounter) -> None:
    """Refuse a vocabulary without the words of a text; nothing but ``<UNK>`` would be learned.

    Warn if it lacks some of the most frequent ones, as one of another tokenizer does.
    """
    num_known = sum(count for word, count in counter.totals() if word in vocab)
    if num_known < MIN_KNOWN * counter.num_words:
        share = 1 - num_known / counter.num_words
        problem = _unfit(share, _frequent_unknown(counter, vocab), vocab.words)
        raise FormatError(
            f"the vocabulary: {problem} `finetune --vocab corpus` builds one from the text."
        )
    most = min(_NUM_MOST_FREQUENT, len(vocab) // 10)
    frequent = heapq.nlargest(most, counter.totals(), key=itemgetter(1))
    missing = [
        f"{word!r} ({count:,})"
        for word, count in frequent
        if count >= _MIN_FREQUENT and word not in vocab
    ]
    if missing:
        log.warning(
            "the vocabulary lacks %s of the %d most frequent words of the text: %s. If it was "
            "counted with another tokenizer, count again with that of the model: `elmokit vocab "
            "--tokenizer`, or --model.", len(missing), most, ", ".join(missing[:3]),
        )  # fmt: skip


def warn_of_unsplit_korean(vocab: WordVocab) -> None:
    """Warn if most words, which the tokenizer `simple` made, are Korean."""
    words = vocab.words[:_MAX_SAMPLE]
    if 2 * sum(_HANGUL.search(word) is not None for word in words) > len(words):
        log.warning(
            "most words of this text are Korean, and the tokenizer 'simple' leaves particles and "
            "endings on them, so many words are rare: --tokenizer korean (extra ko) splits "
            "morphemes"
        )


def _unfit(share: float, unknown: Iterable[tuple[str, int]], lines: Iterable[str]) -> str:
    frequent = ", ".join(f"{word!r} ({count:,})" for word, count in islice(unknown, 3))
    example = next((shown(line) for line in lines if line not in SPECIAL_WORDS), "none")
    return (
        f"{share:.1%} of the words of the text are unknown to the vocabulary, such as {frequent}; "
        f"its first word is {example}. A line must hold one word as the tokenizer makes "
        "it, in the same case, without count, quotes or marks. `elmokit vocab` writes such a file."
    )


def _rank_correlation(counts: np.ndarray) -> float:
    """Return Spearman's correlation of position and rank by descending count."""
    if counts.size < 2 or (counts == counts[0]).all():
        return 1.0
    # Equal counts share the mean of their ranks, as Spearman's correlation wants it.
    _, rank_of_value, size_of_value = np.unique(-counts, return_inverse=True, return_counts=True)
    last_rank = np.cumsum(size_of_value)
    mean_rank = last_rank - (size_of_value - 1) / 2
    return float(np.corrcoef(np.arange(counts.size), mean_rank[rank_of_value])[0, 1])
