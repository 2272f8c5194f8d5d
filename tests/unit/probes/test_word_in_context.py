"""The same word in two texts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.probes.word_in_context import best_threshold, find_words, word_in_context
from elmokit.tasks.formats.senses import ContextPair, WordInContext

from ...builders.probe_sources import LOCATION, TableSource

VECTORS = {"bank": [1, 0], "banks": [0.8, 0.6], "shore": [0, 1], "the": [5, 5]}


def pair(first, second, same):
    """Texts such as ``the [bank]``."""
    words = {}
    for name, marked in (("first", first), ("second", second)):
        text = marked.replace("[", "").replace("]", "")
        start, end = marked.index("["), marked.index("]") - 1
        words[name] = WordInContext(text=text, start=start, end=end)
    return ContextPair(lemma="x", same_sense=same, location=LOCATION, **words)


PAIRS = [
    pair("the [bank]", "[bank] the", True),
    pair("[bank]", "the [banks]", True),
    pair("[bank]", "the [shore]", False),
]


def score(train, dev, tokenize=str.split):
    found = (find_words(pairs, tokenize) for pairs in (train, dev))
    return word_in_context([TableSource(VECTORS)], *found)[0]


def test_the_threshold_is_learned_and_applied():
    dev = [pair("[banks]", "[bank] the", True), pair("[shore]", "[banks]", False)]
    found = score(PAIRS, dev)
    # cosines of training: 1, 0.8 | 0; of dev: 0.8 | 0.6
    assert found.threshold == pytest.approx(0.4)
    assert (found.train_accuracy, found.accuracy) == (100, 50)
    assert found.counts.tolist() == [[1, 1], [0, 1]]


def test_a_pair_whose_word_is_not_found_is_wrong_and_counted(caplog):
    def lossy(text):
        return [] if "강" in text else text.split()

    dev = [pair("[bank]", "[bank]", True), pair("강 [bank]", "[bank]", True)]
    found = score(PAIRS, dev, lossy)
    assert (found.accuracy, found.num_not_found, found.num_pairs) == (50, 1, 2)
    assert "1 of 2 pairs" in caplog.text


COSINES = st.integers(-4, 4).map(lambda n: n / 4)


@given(st.lists(st.tuples(COSINES, st.booleans()), min_size=1, max_size=12))
def test_no_other_threshold_is_better(pairs):
    cosines = np.array([cosine for cosine, _ in pairs], dtype=np.float32)
    truth = np.array([same for _, same in pairs])
    threshold, accuracy = best_threshold(cosines, truth)
    assert accuracy == pytest.approx(100 * np.mean((cosines >= threshold) == truth))
    for other in np.arange(-1.125, 1.2, 0.25):
        assert np.mean((cosines >= other) == truth) <= accuracy / 100 + 1e-9
