"""The n-gram model that pre-training is compared with."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest

BEGIN, END, NUM_IDS = 1, 2, 9


@pytest.fixture
def ngrams(program):
    return program("bench_ngram", folder="benchmarks")


def stream_of(ngrams, sentences):
    ids = np.concatenate([[BEGIN, *sentence, END] for sentence in sentences])
    return ngrams.Stream(ids, BEGIN, END)


def probability_by_hand(sentences, order, history, word):
    """Kneser-Ney with dictionaries, one n-gram at a time (Chen and Goodman 1998)."""
    raw = [Counter() for _ in range(order + 1)]
    for sentence in sentences:
        marked = (BEGIN, *sentence, END)
        for n in range(1, order + 1):
            raw[n].update(marked[i : i + n] for i in range(len(marked) - n + 1))
    probability = 1 / (NUM_IDS - 2)
    for n in range(1, order + 1):
        counts = dict(raw[n])
        if n < order:
            before = defaultdict(set)
            for gram in raw[n + 1]:
                before[gram[1:]].add(gram[0])
            counts = {g: c if g[0] == BEGIN else len(before[g]) for g, c in raw[n].items()}
        if n == 1:
            counts.pop((BEGIN,))
        tally = Counter(counts.values())
        n1, n2, n3, n4 = (max(1, tally[k]) for k in (1, 2, 3, 4))
        y = n1 / (n1 + 2 * n2)
        cuts = [0, *(max(0, k - (k + 1) * y * b / a) for k, a, b in
                     ((1, n1, n2), (2, n2, n3), (3, n3, n4)))]  # fmt: skip
        context = tuple(history[-(n - 1) :]) if n > 1 else ()
        own = {gram[-1]: count for gram, count in counts.items() if gram[:-1] == context}
        if len(context) < n - 1 or not own:
            break
        total, count = sum(own.values()), own.get(word, 0)
        rest = sum(cuts[min(c, 3)] for c in own.values()) / total
        probability = (count - cuts[min(count, 3)]) / total + rest * probability
    return probability


@pytest.mark.parametrize("order", [1, 2, 5])
def test_probabilities_of_n_grams_are_those_counted_by_hand(ngrams, order):
    generator = np.random.default_rng(5)
    weights = np.array([8, 5, 3, 2, 1, 1]) / 20
    lengths = generator.integers(1, 8, 60)
    sentences = [generator.choice(np.arange(3, NUM_IDS), size, p=weights) for size in lengths]
    model = ngrams.KneserNey(stream_of(ngrams, sentences[:50]), NUM_IDS, order)
    expected = []
    for sentence in sentences[50:]:
        marked = [BEGIN, *sentence, END]
        expected += [
            math.log(probability_by_hand(sentences[:50], order, marked[:i], marked[i]))
            for i in range(1, len(marked))
        ]
    log_probs = model.log_probs(stream_of(ngrams, sentences[50:]))
    assert log_probs == pytest.approx(expected, abs=1e-12)
    turned = stream_of(ngrams, sentences).reversed()
    by_hand = stream_of(ngrams, [sentence[::-1] for sentence in reversed(sentences)])
    assert np.array_equal(turned.ids, by_hand.ids)
    assert np.array_equal(turned.positions, by_hand.positions)
