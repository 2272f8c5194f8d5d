"""Sentences to measure on: a file of the user's, or the text of the package's demo."""

from collections.abc import Sequence
from importlib.resources import files
from itertools import cycle, islice
from pathlib import Path

Sentence = list[str]


def read_text(path: Path | None) -> list[Sentence]:
    """Read tokenized sentences, one a line, words separated by white space.

    Args:
        path: UTF-8 text; none: the English text of `elmokit demo` (short sentences, few distinct
            words: good for a trial, not for figures to publish).

    Raises:
        ValueError: if there is no sentence.
    """
    if path is None:
        text = files("elmokit").joinpath("data/demo/en.txt").read_text(encoding="utf-8")
    else:
        text = path.read_text(encoding="utf-8")
    sentences = [words for line in text.split("\n") if (words := line.split())]
    if not sentences:
        raise ValueError(f"{path}: no sentence; expected one a line, words separated by spaces.")
    return sentences


def take_words(sentences: Sequence[Sentence], num_words: int) -> list[Sentence]:
    """Return sentences of so many words, the last one cut; a short text is read over and over."""
    taken: list[Sentence] = []
    for sentence in cycle(sentences):
        if num_words <= 0:
            return taken
        taken.append(sentence[:num_words])
        num_words -= len(sentence)
    raise AssertionError("a text is never empty")


def batches(sentences: Sequence[Sentence], size: int, count: int) -> list[list[Sentence]]:
    """Return the first ``count`` sentences in batches; a short text is read over and over."""
    chosen = list(islice(cycle(sentences), count))
    return [chosen[start : start + size] for start in range(0, count, size)]


def num_tokens(calls: Sequence[Sequence[Sentence]]) -> int:
    """Count words plus the two boundaries of every sentence, as all throughputs here do."""
    return sum(len(sentence) + 2 for sentences in calls for sentence in sentences)


def text_metadata(sentences: Sequence[Sentence], path: Path | None) -> dict[str, object]:
    """Say what text was read."""
    num_words = sum(map(len, sentences))
    return {
        "text": "demo text of the package" if path is None else path.name,
        "sentences": len(sentences),
        "words": num_words,
        "distinct_words": len({word for sentence in sentences for word in sentence}),
        "words_per_sentence": round(num_words / len(sentences), 1),
    }
