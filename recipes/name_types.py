"""Add to static vectors which names their words are, as a tagger finds them in the biLM's text.

    python recipes/name_types.py small-en.bin SHARDS -o vectors.bin

The vectors are reduced to 56 dimensions by a truncated SVD; four more are the shares in which
`ner-en`, an earlier one, takes the word for a person, a location, an organization or none of them
in 2.9 million words. Words that are mostly names, but have no vector, get one with these shares
alone.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from elmokit.corpus.shards import ShardSet
from elmokit.metrics.task_scores import read_spans
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.vectors.vector_files import read_vectors, write_vectors

TYPES = ("PER", "LOC", "ORG", "O")
DIM = 56
MIN_COUNT = 5  # occurrences from which shares say something
SCALE = 3  # of the shares, in root mean squares of the vectors


def sentences(shard_dir: Path, num_words: int) -> Iterator[list[str]]:
    """Yield sentences of 4 to 60 words from all parts of the text."""
    shards, words = ShardSet.open(shard_dir), 0
    numbers = range(0, len(shards), max(1, len(shards) // 25))
    for place, number in enumerate(numbers, 1):
        for sentence in shards.load(number).sentences():
            if words > num_words * place / len(numbers):
                break
            if 4 <= len(sentence) <= 60:
                words += len(sentence)
                yield sentence


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vectors", type=Path)
    parser.add_argument("shards", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--words", type=int, default=3_000_000)
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    tagger = TaskRun.load("ner-en", precision="int8")
    for example, tags in tagger.predict(sentences(options.shards, options.words)):
        spans = read_spans(tags)
        types = {place: kind for kind, start, end in spans for place in range(start, end)}
        for place, word in enumerate(example.tokens):
            if word[:1].isupper() or place in types:
                counts[word][types.get(place, "O")] += 1
    counts = {word: of for word, of in counts.items() if of.total() >= MIN_COUNT}
    vectors = read_vectors(options.vectors)
    values = vectors.values[2:]
    values = values @ np.linalg.svd(values, full_matrices=False).Vh[:DIM].T
    known = set(vectors.words)
    names = [word for word, of in counts.items() if of["O"] < of.total() / 2 and word not in known]
    words = [*vectors.words, *sorted(names, key=lambda word: -counts[word].total())]
    scale = SCALE * float(np.sqrt((values**2).mean()))
    shares = np.zeros((len(words), len(TYPES)), dtype=np.float32)
    for row, word in enumerate(words):
        if word in counts:
            shares[row] = [scale * counts[word][kind] / counts[word].total() for kind in TYPES]
    padded = np.zeros((len(words), DIM), dtype=np.float32)
    padded[: len(values)] = values
    write_vectors(options.output, words, np.concatenate([padded, shares], axis=1))
    print(f"{options.output}: {len(words):,} words, {len(names):,} of them names without a vector")


if __name__ == "__main__":
    main()
