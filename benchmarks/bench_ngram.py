"""The sanity line of pre-training: a Kneser-Ney n-gram model on the same vocabulary and text.

    python benchmarks/bench_ngram.py RUN_DIR [--order 5] [--text FILE …]

Reads the tokenized shards and the vocabulary of a pre-training run, counts the n-grams of the
training sentences (modified Kneser-Ney with three discounts per order, interpolated down to the
uniform distribution, one ``<S>`` before each sentence, as KenLM does), and scores the run's
held-out sentences, or ``--text`` split by the run's tokenizer, in both directions over exactly the
targets that `elmokit perplexity` scores: every word and one sentence end. Unknown words are <UNK>
in training and test. Prints one JSON object.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import new_parser

from elmokit.corpus.readers import read_sentences
from elmokit.corpus.shards import ShardSet
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import WordVocab

NOTHING = -1
"""Id of an n-gram that does not exist: it was never seen, or begins before its sentence."""


class Stream:
    """Sentences one after another, each as ``<S> words </S>``; their (N,) ids, and those marks."""

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


def word_ids(shards: ShardSet, vocab: WordVocab) -> Iterable[np.ndarray]:
    """Yield the word ids of each sentence."""
    for index in range(len(shards)):
        shard = shards.load(index)
        ids = vocab.encode(shard.words)[shard.tokens]
        yield from np.split(ids, shard.offsets[1:-1])


class Order(NamedTuple):
    """The n-grams of one length n, in ascending order of their keys."""

    keys: np.ndarray
    """(G,) id of the first n - 1 words among the shorter n-grams, times V, plus the last word."""
    alone: np.ndarray
    """(G,) probability that the n-gram's count gives its last word, discounted."""
    back_off: np.ndarray
    """(contexts,) weight of the next shorter length after each context; 1 where it is unseen."""


class KneserNey:
    """Interpolated modified Kneser-Ney n-gram model over a closed vocabulary.

    Ids are 1 to V, ``num_ids`` is V + 1, and ``<S>`` is never predicted.

    Source: Chen and Goodman 1998, sections 3 and 4.1.6.
    """

    def __init__(self, stream: Stream, num_ids: int, order: int) -> None:
        self.num_ids, self.begin = num_ids, stream.begin
        self.orders: list[Order] = []
        shorter: Grams | None = None
        for n in range(1, order + 1):
            grams = count_grams(stream, n, shorter, num_ids)
            if shorter is not None:  # a shorter n-gram counts the different words before it
                preceded = np.bincount(grams.suffixes, minlength=len(shorter.keys))
                self._add(shorter.keys, np.where(shorter.begins, shorter.counts, preceded))
            shorter = grams
        assert shorter is not None
        self._add(shorter.keys, shorter.counts)

    def _add(self, keys: np.ndarray, counts: np.ndarray) -> None:
        """Turn counts into probabilities and the weights of the next shorter length."""
        num_contexts = len(self.orders[-1].keys) if self.orders else 1
        if not self.orders:
            counts = np.where(keys == self.begin, 0, counts)  # it is no target
        n1, n2, n3, n4 = (max(1, int((counts == k).sum())) for k in (1, 2, 3, 4))
        y = n1 / (n1 + 2 * n2)
        discounts = np.array([0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3])
        taken = discounts.clip(0)[np.minimum(counts, 3)]
        context = keys // self.num_ids
        total = np.bincount(context, counts, num_contexts)
        back_off = np.where(total > 0, np.bincount(context, taken, num_contexts), 1.0)
        total = np.maximum(total, 1)
        self.orders.append(Order(keys, (counts - taken) / total[context], back_off / total))

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
            context = before(np.where(is_seen, places, NOTHING), stream)
        return np.log(probs[~stream.begins])


class Grams(NamedTuple):
    """The n-grams of one length n in the training text."""

    keys: np.ndarray
    counts: np.ndarray
    suffixes: np.ndarray
    """(G,) ids of the last n - 1 words among the n-grams of length n - 1."""
    begins: np.ndarray
    """(G,) whether the first word is ``<S>``."""
    at: np.ndarray
    """(N,) id of the n-gram that ends at each position, or NOTHING."""


def count_grams(stream: Stream, n: int, shorter: Grams | None, num_ids: int) -> Grams:
    ends = np.flatnonzero(stream.positions >= n - 1)
    context = 0 if shorter is None else before(shorter.at, stream)[ends]
    keys, firsts, inverse, counts = np.unique(
        context * num_ids + stream.ids[ends],
        return_index=True, return_inverse=True, return_counts=True,
    )  # fmt: skip
    at = np.full(len(stream.ids), NOTHING, dtype=np.int64)
    at[ends] = inverse
    firsts = ends[firsts]
    suffixes = firsts if shorter is None else shorter.at[firsts]
    return Grams(keys, counts, suffixes, stream.positions[firsts] == n - 1, at)


def before(values: np.ndarray, stream: Stream) -> np.ndarray:
    """Give each position the value of the one before it in its sentence."""
    shifted = np.roll(values, 1)
    shifted[stream.begins] = NOTHING  # also the first, which got the last
    return shifted


def measure(run_dir: Path, *, order: int, text: Sequence[Path]) -> dict[str, Any]:
    """Train and score in both directions."""
    train = ShardSet.open(run_dir / "shards")
    vocab = WordVocab.read(run_dir / "vocab.txt")
    if text:
        tokenizer = build_tokenizer(TokenizerConfig(**train.metadata["tokenizer"]))
        form = train.metadata["normalization"]
        sentences = read_sentences(text, tokenizer, normalization=form)
        held_out = sentence_stream(map(vocab.encode, sentences), vocab)
    else:
        held_out = sentence_stream(word_ids(ShardSet.open(run_dir / "valid"), vocab), vocab)
    stream = sentence_stream(word_ids(train, vocab), vocab)
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


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--order", type=int, default=5, choices=range(1, 7), metavar="1..6")
    parser.add_argument("--text", type=Path, nargs="+", default=[], help="default: RUN_DIR/valid")
    options = parser.parse_args()
    print(json.dumps(measure(options.run_dir, order=options.order, text=options.text)))


if __name__ == "__main__":
    main()
