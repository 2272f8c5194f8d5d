"""The sanity line of pre-training: a Kneser-Ney bigram model on the same vocabulary and text.

    python benchmarks/bench_bigram.py RUN_DIR [--max-words N]

Reads the tokenized shards, the vocabulary and the held-out sentences of a pre-training run, counts
bigrams of the training sentences (modified Kneser-Ney with three discounts, interpolated with
continuation counts and these with the uniform distribution, as KenLM does), and scores the held-out
sentences in both directions over exactly the targets that `elmokit perplexity` scores: every word
and one sentence end. Unknown words are <UNK> in training and test. Prints one JSON object.
"""

import argparse
import json
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from elmokit.corpus.shards import Shard, ShardSet
from elmokit.text.word_vocab import WordVocab


def id_streams(shard: Shard, vocab: WordVocab, *, backward: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return (context, target) ids of every target of a shard, in one direction."""
    ids = vocab.encode(shard.words)[shard.tokens]
    lengths = np.diff(shard.offsets)
    starts = shard.offsets[:-1] + 2 * np.arange(len(lengths))
    stream = np.empty(len(ids) + 2 * len(lengths), dtype=np.int64)
    inner = np.ones(len(stream), dtype=bool)
    inner[starts] = inner[starts + lengths + 1] = False
    stream[inner] = ids
    stream[starts] = vocab.sentence_begin_id
    stream[starts + lengths + 1] = vocab.sentence_end_id
    pairs = np.ones(len(stream), dtype=bool)
    pairs[starts + lengths + 1] = False  # no pair begins at a sentence's last position
    left = np.flatnonzero(pairs)
    return (stream[left + 1], stream[left]) if backward else (stream[left], stream[left + 1])


class KneserNeyBigram:
    """Interpolated modified Kneser-Ney bigram model over a closed vocabulary.

    Source: Chen and Goodman 1998, sections 3 and 4.1.6.
    """

    def __init__(
        self, contexts_and_targets: Iterator[tuple[np.ndarray, np.ndarray]], num_ids: int
    ) -> None:
        self.num_ids = num_ids
        keys, counts = _count(
            context * num_ids + target for context, target in contexts_and_targets
        )
        self.keys, self.counts = keys, counts
        context, target = keys // num_ids, keys % num_ids
        self.discounts = _discounts(counts)
        taken = self.discounts[np.minimum(counts, 3)]
        self.context_total = np.bincount(context, counts, num_ids)
        self.left_over = np.bincount(context, taken, num_ids) / np.maximum(self.context_total, 1)
        continuation = np.bincount(target, minlength=num_ids)
        unigram_discounts = _discounts(continuation[continuation > 0])
        cut = unigram_discounts[np.minimum(continuation, 3)] * (continuation > 0)
        rest = cut.sum() / continuation.sum()
        self.unigram = (continuation - cut) / continuation.sum() + rest / (num_ids - 1)

    def log_probs(self, context: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return ln P(target | context) of each pair."""
        wanted = context * self.num_ids + target
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        count = np.where(self.keys[place] == wanted, self.counts[place], 0)
        total = self.context_total[context]
        seen = total > 0
        own = (count - self.discounts[np.minimum(count, 3)] * (count > 0)) / np.maximum(total, 1)
        back_off = np.where(seen, self.left_over[context], 1.0)
        return np.log(own + back_off * self.unigram[target])


def _count(key_arrays: Iterator[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    keys, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    for array in key_arrays:
        new_keys, new_counts = np.unique(array, return_counts=True)
        both = np.concatenate((keys, new_keys))
        order = np.argsort(both, kind="stable")
        both, joined = both[order], np.concatenate((counts, new_counts))[order]
        first = np.flatnonzero(np.concatenate(([True], both[1:] != both[:-1])))
        keys, counts = both[first], np.add.reduceat(joined, first)
    return keys, counts


def _discounts(counts: np.ndarray) -> np.ndarray:
    """Return the discounts for counts 0, 1, 2 and 3 or more."""
    n1, n2, n3, n4 = (max(1, int((counts == k).sum())) for k in (1, 2, 3, 4))
    y = n1 / (n1 + 2 * n2)
    return np.array([0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]).clip(0)


def measure(run_dir: Path, *, max_words: int | None) -> dict:
    """Train and score in both directions."""
    train, valid = ShardSet.open(run_dir / "shards"), ShardSet.open(run_dir / "valid")
    vocab = WordVocab.read(run_dir / "vocab.txt")
    num_ids = len(vocab) + 1
    chosen, num_words = [], 0
    for index, entry in enumerate(train.entries):
        if max_words is not None and num_words >= max_words:
            break
        chosen.append(index)
        num_words += entry.num_words
    nats = {}
    num_targets = 0
    for direction in ("forward", "backward"):
        backward = direction == "backward"
        model = KneserNeyBigram(
            (id_streams(train.load(index), vocab, backward=backward) for index in chosen), num_ids
        )
        _check_sums_to_one(model, vocab)
        scores = [
            model.log_probs(*id_streams(valid.load(index), vocab, backward=backward))
            for index in range(len(valid))
        ]
        num_targets = sum(map(len, scores))
        nats[direction] = -sum(float(score.sum()) for score in scores) / num_targets
    return {
        "model": "interpolated modified Kneser-Ney bigram",
        "training_words": num_words,
        "vocabulary": len(vocab),
        "targets": num_targets,
        **{direction: float(np.exp(value)) for direction, value in nats.items()},
        "mean": float(np.exp(sum(nats.values()) / 2)),
    }


def _check_sums_to_one(model: KneserNeyBigram, vocab: WordVocab) -> None:
    """Fail loudly if the model is no distribution: some contexts, all targets."""
    everything = np.arange(1, model.num_ids)
    for context in (vocab.sentence_begin_id, vocab.unknown_id, min(10, len(vocab)), len(vocab)):
        total = np.exp(model.log_probs(np.full(len(everything), context), everything)).sum()
        if abs(total - 1) > 1e-6:
            raise AssertionError(f"probabilities after word {context} sum to {total}")


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--max-words", type=int, help="train on the first shards only")
    arguments = parser.parse_args()
    started = time.monotonic()
    result = measure(arguments.run_dir, max_words=arguments.max_words)
    metadata = {"seconds": round(time.monotonic() - started, 1), "machine": platform.machine()}
    print(json.dumps({**result, **metadata}))


if __name__ == "__main__":
    main()
