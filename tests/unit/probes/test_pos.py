"""Parts of speech by a linear classifier."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.probes import pos
from elmokit.probes.pos import GRADIENT_TOLERANCE, MAJORITY, LinearClassifier, fit_linear, probe_pos

from ...builders.probe_sources import TableSource, tagged

TRAIN = ("the/DET dog/NOUN runs/VERB", "the/DET runs/NOUN", "a/DET cat/NOUN runs/VERB", "run/VERB")
DEV = ("the/DET cat/NOUN sleeps/VERB", "runs/NOUN bird/NOUN", "oh/INTJ")
KINDS = {"the": 0, "a": 0, "dog": 1, "cat": 1, "bird": 1, "runs": 2, "run": 2, "sleeps": 2, "oh": 2}


@pytest.fixture
def scores():
    good = {word: np.eye(3)[kind] for word, kind in KINDS.items()}
    source = TableSource(good, ("good",))
    return probe_pos([source], [tagged(t) for t in TRAIN], [tagged(t) for t in DEV])


def test_seen_and_unseen_words_are_scored_apart(scores):
    good = scores[1]
    assert (good.name, good.num_words, good.num_unseen) == ("good", 6, 3)
    # right: the cat sleeps | bird; wrong: runs as a noun, and a tag that training lacks
    assert good.counts.tolist() == [[3, 3], [1, 2], [0, 1]]
    assert good.unseen_counts.tolist() == [[1, 1], [1, 1], [0, 1]]
    assert good.accuracy == pytest.approx(100 * 4 / 6)
    assert good.seen == pytest.approx(100 * 2 / 3)
    assert good.unseen == pytest.approx(100 * 2 / 3)


def test_the_baseline_gives_each_word_its_most_frequent_tag(scores):
    baseline = scores[0]
    # the, cat right; runs is a verb; of all words the most frequent tag (a tie) is the first met
    assert baseline.name == MAJORITY
    assert baseline.counts[0].tolist() == [2, 3]
    assert baseline.seen == pytest.approx(100 * 2 / 3)


def test_the_same_call_gives_the_same_scores():
    random = np.random.default_rng(0)
    table = {word: random.normal(size=4) for word in KINDS}
    train, dev = [tagged(t) for t in TRAIN], [tagged(t) for t in DEV]
    one, other = (probe_pos([TableSource(table)], train, dev)[1] for _ in range(2))
    np.testing.assert_array_equal(one.counts, other.counts)


def test_sentences_without_words_are_refused():
    with pytest.raises(ValueError, match=r"`train` .*`dev` "):
        probe_pos([TableSource({"a": [1]})], [tagged("a/DET")], [])


def test_a_classifier_that_does_not_converge_is_told(monkeypatch, caplog):
    monkeypatch.setattr(pos, "MAX_ITERATIONS", 1)
    table = {word: np.eye(3)[kind] for word, kind in KINDS.items()}
    probe_pos([TableSource(table)], [tagged(t) for t in TRAIN], [tagged(t) for t in DEV])
    assert "table: the classifier did not converge in 1 iterations" in caplog.text


def draw(seed, *, num_rows=60, dim=4, num_labels=3):
    random = np.random.default_rng(seed)
    features = random.normal(size=(num_rows, dim)).astype(np.float32)
    scores = features @ random.normal(size=(dim, num_labels))
    return features, (scores + random.gumbel(size=(num_rows, num_labels))).argmax(axis=1)


def test_the_optimum_of_loss_and_prior_is_reached():
    features, labels = draw(0)
    fitted = fit_linear(features, labels, 3)
    assert fitted.converged
    weight, bias = (x.double().requires_grad_() for x in (fitted.weight, fitted.bias))
    x = (torch.from_numpy(features).double() - fitted.mean) / fitted.deviation
    loss = torch.nn.functional.cross_entropy(x @ weight + bias, torch.from_numpy(labels))
    (loss + weight.square().sum() / (2 * len(features))).backward()
    for parameter in (weight, bias):
        assert float(parameter.grad.abs().max()) < 1.1 * GRADIENT_TOLERANCE


@given(seed=st.integers(0, 100), half=st.booleans())
def test_scale_and_offset_of_features_do_not_matter(seed, half):
    """So that no layer gains from the size of its activations."""
    features, labels = draw(seed)
    random = np.random.default_rng(seed + 1)
    scaled = features * 10 ** random.uniform(-2, 1, 4) + random.normal(size=4)
    kind = np.float16 if half else np.float32
    plain, other = (fit_linear(x, labels, 3).weight for x in (features, scaled.astype(kind)))
    assert float((plain - other).abs().max()) < (0.3 if half else 0.02)


def test_features_are_not_changed_and_those_that_are_constant_do_no_harm():
    features = np.array([[1, 5], [2, 5], [3, 5], [4, 5]], dtype=np.float32)
    before = features.copy()
    fitted = fit_linear(features, np.array([0, 0, 1, 1]), 2)
    np.testing.assert_array_equal(features, before)
    assert fitted.predict(features).tolist() == [0, 0, 1, 1]
    assert fitted.predict(np.array([[0, 9], [9, 0]], dtype=np.float16)).tolist() == [0, 1]
    assert fitted.predict(np.zeros((0, 2), dtype=np.float32)).shape == (0,)
    nothing = fit_linear(np.zeros((5, 2), dtype=np.float32), np.array([0, 1, 1, 1, 2]), 3)
    assert nothing.predict(np.zeros((2, 2), dtype=np.float32)).tolist() == [1, 1]


def test_everything_is_computed_on_the_device():
    """The meta device computes shapes alone, so the first number that is read says where it is."""
    features, _ = draw(0)
    with pytest.raises(RuntimeError, match="meta tensor"):  # the loss
        probe_pos(
            [TableSource({"a": [1]})], [tagged("a/DET")], [tagged("a/DET")], device="meta"
        )  # fmt: skip
    mean, weight, bias = (torch.zeros(shape, device="meta") for shape in (4, (4, 3), 3))
    fitted = LinearClassifier(mean, mean, weight, bias, num_iterations=0, converged=True)
    with pytest.raises(RuntimeError, match="meta tensor"):  # the labels
        fitted.predict(features)
