"""Tests of the probes: by name, parts of speech, and the same word in two texts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import InputError
from elmokit.metrics.task_scores import accuracy_of
from elmokit.probes import pos
from elmokit.probes.pos import MAJORITY, probe_pos
from elmokit.probes.probe import Figure, Probe, run_probe, training_gains
from elmokit.probes.word_in_context import best_threshold, find_words, word_in_context
from elmokit.tasks.formats.senses import ContextPair, WordInContext

from ...builders.probe_sources import LOCATION, TableSource, tagged
from ...builders.task_models import toy_model


def counts(*right):
    """The first two units are those of a, the others those of b."""
    return np.array([[*right[:1], 1, 0, 0], [right[1], 1, 0, 0], [0, 0, right[2], 1]], "f8")


def test_layers_are_compared_with_the_same_layers_untrained():
    probe = Probe(
        find=lambda data, test: None, read=lambda files, tokenize, units: None,
        words=lambda data: set(), measure=lambda *arguments: (), columns={"a": "A", "b": "B"},
        note="", counts="counts",
        figures=(Figure("a", accuracy_of, slice(0, 2)), Figure("b", accuracy_of, slice(2, 4))),
    )  # fmt: skip
    scores = {
        "baseline": [counts(1, 1, 1)], "layer 0": [counts(1, 1, 0)],
        "layer 1": [counts(1, 1, 1)], "random 1": [counts(1, 0, 1)], "static": [counts(1, 1, 1)],
    }  # fmt: skip
    gains = training_gains(probe, scores)
    assert [(one.name, one.untrained, one.figure) for one in gains] == [
        ("layer 1", "random 1", "a"), ("layer 1", "random 1", "b"),
    ]  # fmt: skip
    assert [(one.difference, one.num_units) for one in gains] == [(50, 2), (0, 1)]
    assert gains[0].low < 0 < 50 < gains[0].high


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("syntax", {}), ("pos", {"test": "semeval2007"}), ("pos", {"units": "eojeol"}),
        ("wic", {"units": "words"}), ("pos", {"layers": 7}), ("pos", {"precision": "fp8"}),
    ],
)  # fmt: skip
def test_what_cannot_be_probed_is_told(tmp_path, name, options):
    toy_model().save(tmp_path / "model")
    with pytest.raises(InputError):
        run_probe(name, tmp_path / "data", str(tmp_path / "model"), **options)


TEXT = "the/DET dog/NOUN runs/VERB | the/DET runs/NOUN | a/DET cat/NOUN runs/VERB | run/VERB"
TRAIN = [tagged(text) for text in TEXT.split("|")]
DEV = [tagged(text) for text in ("the/DET cat/NOUN sleeps/VERB", "runs/NOUN bird/NOUN", "oh/INTJ")]
KINDS = {"the": 0, "a": 0, "dog": 1, "cat": 1, "bird": 1, "runs": 2, "run": 2, "sleeps": 2, "oh": 2}
TABLE = {word: np.eye(3)[kind] for word, kind in KINDS.items()}


def test_seen_and_unseen_words_are_scored_apart():
    pytest.importorskip("sklearn")
    baseline, good = probe_pos([TableSource(TABLE, ("good",))], TRAIN, DEV)
    assert (good.name, good.num_words, good.num_unseen) == ("good", 6, 3)
    # right: the cat sleeps | bird; wrong: runs as a noun, and a tag that training lacks
    assert good.counts.tolist() == [[3, 3], [1, 2], [0, 1]]
    assert good.unseen_counts.tolist() == [[1, 1], [1, 1], [0, 1]]
    assert (good.accuracy, good.seen, good.unseen) == pytest.approx((200 / 3,) * 3)
    # the, cat right; runs is a verb; of all words the most frequent tag (a tie) is the first met
    assert (baseline.name, baseline.counts[0].tolist()) == (MAJORITY, [2, 3])
    assert baseline.seen == pytest.approx(200 / 3)


def test_no_layer_gains_from_the_size_of_its_activations():
    pytest.importorskip("sklearn")
    random = np.random.default_rng(0)
    x, dev = random.normal(size=(60, 4)), random.normal(size=(2000, 4))
    labels = (x @ random.normal(size=(4, 3)) + random.gumbel(size=(60, 3))).argmax(axis=1)
    scale, offset = 10 ** random.uniform(-2, 1, 4), random.normal(size=4)
    tags = [f"T{label}" for label in labels]
    plain, scaled = (
        pos._classify("x", rows.astype("f4"), tags, dev_rows.astype("f4"))
        for rows, dev_rows in ((x, dev), (x * scale + offset, dev * scale + offset))
    )
    assert np.mean(np.array(plain) == np.array(scaled)) > 0.998


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
    parts = (find_words(pairs, tokenize) for pairs in (train, dev))
    return word_in_context([TableSource(VECTORS)], *parts)[0]


def test_the_threshold_is_learned_and_applied():
    dev = [pair("[banks]", "[bank] the", True), pair("[shore]", "[banks]", False)]
    result = score(PAIRS, dev)
    # cosines of training: 1, 0.8 | 0; of dev: 0.8 | 0.6
    assert result.threshold == pytest.approx(0.4)
    assert (result.train_accuracy, result.accuracy) == (100, 50)
    assert result.counts.tolist() == [[1, 1], [0, 1]]


def test_a_pair_whose_word_is_not_found_is_wrong_and_counted(caplog):
    def lossy(text):
        return [] if "강" in text else text.split()

    dev = [pair("[bank]", "[bank]", True), pair("강 [bank]", "[bank]", True)]
    result = score(PAIRS, dev, lossy)
    assert (result.accuracy, result.num_not_found, result.num_pairs) == (50, 1, 2)
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
