"""The n-gram models that perplexities are compared with, against counting by hand."""

import importlib.util
import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "bench_ngram.py"
BEGIN, END, NUM_IDS = 1, 2, 9


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_ngram", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def sentences():
    generator = np.random.default_rng(5)
    weights = np.array([8, 5, 3, 2, 1, 1]) / 20
    lengths = generator.integers(1, 8, 60)
    return [generator.choice(np.arange(3, NUM_IDS), size, p=weights) for size in lengths]


def stream_of(bench, sentences):
    ids = np.concatenate([[BEGIN, *sentence, END] for sentence in sentences])
    return bench.Stream(ids, BEGIN, END)


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
        if len(context) < n - 1:
            break
        own = {gram[-1]: count for gram, count in counts.items() if gram[:-1] == context}
        if not own:
            break
        total = sum(own.values())
        count = own.get(word, 0)
        rest = sum(cuts[min(c, 3)] for c in own.values()) / total
        probability = (count - cuts[min(count, 3)]) / total + rest * probability
    return probability


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_are_those_counted_by_hand(bench, sentences, order):
    model = bench.KneserNey(stream_of(bench, sentences[:50]), NUM_IDS, order)
    held_out = sentences[50:]
    found = model.log_probs(stream_of(bench, held_out))
    expected = []
    for sentence in held_out:
        marked = [BEGIN, *sentence, END]
        expected += [
            math.log(probability_by_hand(sentences[:50], order, marked[:i], marked[i]))
            for i in range(1, len(marked))
        ]
    assert found == pytest.approx(expected, abs=1e-12)


def test_the_backward_model_is_the_forward_model_of_reversed_sentences(bench, sentences):
    turned = stream_of(bench, sentences).reversed()
    by_hand = stream_of(bench, [sentence[::-1] for sentence in reversed(sentences)])
    assert np.array_equal(turned.ids, by_hand.ids)
    assert np.array_equal(turned.positions, by_hand.positions)
