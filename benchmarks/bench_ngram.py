"""The sanity line of pre-training: a Kneser-Ney n-gram model on the same vocabulary and text.

    python benchmarks/bench_ngram.py RUN_DIR [--order 5] [--text FILE …]

Reads the tokenized shards and the vocabulary of a pre-training run, counts the n-grams of the
training sentences (modified Kneser-Ney with three discounts per order, interpolated down to the
uniform distribution, one ``<S>`` before each sentence, as KenLM does), and scores the run's
held-out sentences, or ``--text`` split by the run's tokenizer, in both directions over exactly the
targets that `elmokit perplexity` scores: every word and one sentence end. Unknown words are <UNK>
in training and test. Prints one JSON object.
"""

import argparse
import json
import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmokit.corpus.readers import read_sentences
from elmokit.corpus.shards import ShardSet
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import WordVocab

NOTHING = -1
"""Id of an n-gram that does not exist: it was never seen, or begins before its sentence."""


class Stream:
    """Sentences one after another, each as ``<S> words </S>``.

    Args:
        ids: (N,) word ids.
        begin: Id of ``<S>``.
        end: Id of ``</S>``.
    """

    def __init__(self, ids: np.ndarray, begin: int, end: int) -> None:
        self.ids, self.begin, self.end = ids, begin, end
        self.begins = ids == begin
        starts = np.flatnonzero(self.begins)
        lengths = np.diff(starts, append=len(ids))
        self.positions = np.arange(len(ids)) - np.repeat(starts, lengths)  # in the sentence

    def reversed(self) -> "Stream":
        """Return the sentences, last one first, read from their ends."""
        ids = self.ids[::-1].copy()
        ids[self.begins[::-1]] = self.end
        ids[self.ids[::-1] == self.end] = self.begin
        return Stream(ids, self.begin, self.end)


def sentence_stream(sentences: Iterable[np.ndarray], vocab: WordVocab) -> Stream:
    """Put sentences of word ids into one stream."""
    begin, end = vocab.sentence_begin_id, vocab.sentence_end_id
    pieces = [piece for sentence in sentences for piece in ([begin], sentence, [end])]
    return Stream(np.concatenate(pieces), begin, end)


def _sentences(shards: ShardSet, vocab: WordVocab) -> Iterable[np.ndarray]:
    """Yield the word ids of each sentence."""
    for index in range(len(shards)):
        shard = shards.load(index)
        ids = vocab.encode(shard.words)[shard.tokens]
        yield from np.split(ids, shard.offsets[1:-1])


@dataclass(frozen=True)
class Order:
    """The n-grams of one length n, in ascending order of their keys."""

    keys: np.ndarray
    """(G,) id of the first n - 1 words among the shorter n-grams, times V, plus the last word."""
    alone: np.ndarray
    """(G,) probability that the n-gram's count gives its last word, discounted."""
    back_off: np.ndarray
    """(contexts,) weight of the next shorter length after each context; 1 where it is unseen."""


class KneserNey:
    """Interpolated modified Kneser-Ney n-gram model over a closed vocabulary.

    Source: Chen and Goodman 1998, sections 3 and 4.1.6.

    Args:
        stream: Training sentences.
        num_ids: V + 1: ids are 1 to V, and ``<S>`` is never predicted.
        order: The longest n.
    """

    def __init__(self, stream: Stream, num_ids: int, order: int) -> None:
        self.num_ids, self.begin = num_ids, stream.begin
        self.orders: list[Order] = []
        shorter: _Grams | None = None
        for n in range(1, order + 1):
            grams = _grams(stream, n, shorter, num_ids)
            if shorter is not None:  # a shorter n-gram counts the different words before it
                preceded = np.bincount(grams.suffixes, minlength=len(shorter.keys))
                counts = np.where(shorter.begins_sentence, shorter.counts, preceded)
                self._add(shorter.keys, counts)
            shorter = grams
        assert shorter is not None
        self._add(shorter.keys, shorter.counts)

    def _add(self, keys: np.ndarray, counts: np.ndarray) -> None:
        num_contexts = len(self.orders[-1].keys) if self.orders else 1
        if not self.orders:
            counts = np.where(keys == self.begin, 0, counts)  # it is no target
        self.orders.append(_discounted(keys, counts, self.num_ids, num_contexts))

    def log_probs(self, stream: Stream) -> np.ndarray:
        """Return ln P of every position of the stream but the ``<S>``."""
        probs = np.full(len(stream.ids), 1 / (self.num_ids - 2))  # without padding and <S>
        context = np.zeros(len(stream.ids), dtype=np.int64)
        for order in self.orders:
            keys = np.where(context == NOTHING, NOTHING, context * self.num_ids + stream.ids)
            places = np.minimum(np.searchsorted(order.keys, keys), len(order.keys) - 1)
            is_seen = order.keys[places] == keys
            alone = np.where(is_seen, order.alone[places], 0.0)
            probs = alone + np.where(context == NOTHING, 1.0, order.back_off[context]) * probs
            context = _before(np.where(is_seen, places, NOTHING), stream)
        return np.log(probs[~stream.begins])


@dataclass(frozen=True)
class _Grams:
    keys: np.ndarray
    counts: np.ndarray
    suffixes: np.ndarray
    """(G,) ids of the last n - 1 words among the n-grams of length n - 1."""
    begins_sentence: np.ndarray
    """(G,) whether the first word is ``<S>``."""
    at: np.ndarray
    """(N,) id of the n-gram that ends at each position, or NOTHING."""


def _grams(stream: Stream, n: int, shorter: _Grams | None, num_ids: int) -> _Grams:
    ends = np.flatnonzero(stream.positions >= n - 1)
    context = 0 if shorter is None else _before(shorter.at, stream)[ends]
    keys, firsts, inverse, counts = np.unique(
        context * num_ids + stream.ids[ends],
        return_index=True, return_inverse=True, return_counts=True,
    )  # fmt: skip
    at = np.full(len(stream.ids), NOTHING, dtype=np.int64)
    at[ends] = inverse
    firsts = ends[firsts]
    suffixes = firsts if shorter is None else shorter.at[firsts]
    return _Grams(keys, counts, suffixes, stream.positions[firsts] == n - 1, at)


def _before(values: np.ndarray, stream: Stream) -> np.ndarray:
    """Give each position the value of the one before it in its sentence."""
    shifted = np.empty_like(values)
    shifted[1:] = values[:-1]
    shifted[stream.begins] = NOTHING
    return shifted


def _discounted(keys: np.ndarray, counts: np.ndarray, num_ids: int, num_contexts: int) -> Order:
    """Turn counts into probabilities and the weights of the next shorter length."""
    context = keys // num_ids
    taken = _discounts(counts)[np.minimum(counts, 3)]
    total = np.bincount(context, counts, num_contexts)
    back_off = np.where(total > 0, np.bincount(context, taken, num_contexts), 1.0)
    total = np.maximum(total, 1)
    return Order(keys, (counts - taken) / total[context], back_off / total)


def _discounts(counts: np.ndarray) -> np.ndarray:
    """Return the discounts for counts 0, 1, 2 and 3 or more."""
    n1, n2, n3, n4 = (max(1, int((counts == k).sum())) for k in (1, 2, 3, 4))
    y = n1 / (n1 + 2 * n2)
    return np.array([0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]).clip(0)


def measure(run_dir: Path, *, order: int, text: Sequence[Path]) -> dict:
    """Train and score in both directions."""
    train = ShardSet.open(run_dir / "shards")
    vocab = WordVocab.read(run_dir / "vocab.txt")
    stream = sentence_stream(_sentences(train, vocab), vocab)
    held_out = sentence_stream(_held_out(run_dir, train, vocab, text), vocab)
    nats = {}
    for direction in ("forward", "backward"):
        model = KneserNey(stream, len(vocab) + 1, order)
        nats[direction] = -float(model.log_probs(held_out).mean())
        del model
        stream, held_out = stream.reversed(), held_out.reversed()
    return {
        "model": f"interpolated modified Kneser-Ney, order {order}",
        "training_words": train.num_words,
        "vocabulary": len(vocab),
        "targets": int((~held_out.begins).sum()),
        **{direction: float(np.exp(value)) for direction, value in nats.items()},
        "mean": float(np.exp(sum(nats.values()) / 2)),
    }


def _held_out(
    run_dir: Path, train: ShardSet, vocab: WordVocab, text: Sequence[Path]
) -> Iterable[np.ndarray]:
    if not text:
        yield from _sentences(ShardSet.open(run_dir / "valid"), vocab)
        return
    tokenizer = build_tokenizer(TokenizerConfig(**train.metadata["tokenizer"]))
    form = train.metadata["normalization"]
    for sentence in read_sentences(text, tokenizer, normalization=form):
        yield vocab.encode(sentence)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--order", type=int, default=5, choices=range(1, 7), metavar="1..6")
    parser.add_argument("--text", type=Path, nargs="+", default=[], help="default: RUN_DIR/valid")
    arguments = parser.parse_args()
    started = time.monotonic()
    result = measure(arguments.run_dir, order=arguments.order, text=arguments.text)
    metadata = {"seconds": round(time.monotonic() - started, 1), "machine": platform.machine()}
    print(json.dumps({**result, **metadata}))


if __name__ == "__main__":
    main()
