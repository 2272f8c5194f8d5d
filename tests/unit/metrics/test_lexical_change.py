import numpy as np
import pytest

from elmokit.metrics.lexical_change import (
    false_discovery_rates,
    lexical_change,
    uses_of,
    within_word_whitening,
)

stats = pytest.importorskip("scipy.stats", reason="extra `sklearn` is not installed")
distance = pytest.importorskip("scipy.spatial.distance")


def vectors(generator, count, direction=0, *, strength=0.0):
    """Vectors of length 1 about a direction."""
    rows = generator.normal(size=(count, 12)) / np.sqrt(12)
    rows[:, direction] += strength
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def compare(a, b, seed=0, **options):
    generator = np.random.default_rng(seed)
    whitening = within_word_whitening([np.concatenate([a, b])])
    return lexical_change(a, b, whitening, num_rounds=199, generator=generator, **options)


def test_measures_are_those_of_their_definitions():
    generator = np.random.default_rng(1)
    a, b = vectors(generator, 9, 0, strength=1.0), vectors(generator, 14, 1, strength=1.0)
    found = compare(a, b)
    assert found.values["prt"] == pytest.approx(distance.cosine(a.mean(axis=0), b.mean(axis=0)))
    both = np.concatenate([a, b])
    uses = uses_of(both, within_word_whitening([both]))
    uses_a, uses_b = uses[:9], uses[9:]
    assert found.values["apd"] == pytest.approx(distance.cdist(uses_a, uses_b, "cosine").mean())
    inside = [distance.pdist(part, "cosine").mean() for part in (uses_a, uses_b)]
    assert found.excess == pytest.approx(found.values["apd"] - np.mean(inside))
    assert found.p == {"apd": 1 / 200, "prt": 1 / 200}


def test_a_changed_word_gets_more_divisions_up_to_the_most():
    generator = np.random.default_rng(1)
    a, b = vectors(generator, 9, 0, strength=1.0), vectors(generator, 14, 1, strength=1.0)
    assert compare(a, b, most_rounds=1991).p == {"apd": 1 / 1991, "prt": 1 / 1991}
    assert compare(a, b, most_rounds=1992).p == {"apd": 1 / 2190, "prt": 1 / 2190}
    same = vectors(generator, 14, 0, strength=1.0)
    assert compare(a, same, most_rounds=1992) == compare(a, same)


def test_uses_that_are_all_the_same_have_not_changed():
    found = compare(np.full((3, 12), 0.1), np.full((4, 12), 0.1))
    assert (found.excess, found.p) == (0, {"apd": 1, "prt": 1})
    assert found.values == {"apd": 1, "prt": pytest.approx(0)}


def test_whitening_makes_the_covariance_within_words_that_of_noise():
    """Shrunk towards equal variances, the less the more occurrences there are."""
    generator = np.random.default_rng(4)
    samples = [generator.normal(size=(size, 3)) * [1, 5, 0.2] + size for size in (8, 30)]
    total = sum(np.cov(one.T, bias=True) * len(one) for one in samples)
    shrunk = (total + np.trace(total) / 38 * np.eye(3)) / (38 + 3)
    whitening = within_word_whitening(iter(samples))
    np.testing.assert_allclose(whitening.T @ shrunk @ whitening, np.eye(3), atol=1e-9)


def test_false_discovery_rates_agree_with_scipy():
    generator = np.random.default_rng(2)
    values = generator.random(50) ** 3
    expected = stats.false_discovery_control(values)
    assert false_discovery_rates(values.tolist()) == pytest.approx(expected.tolist())
    assert false_discovery_rates([]) == []


def test_without_change_one_in_twenty_p_values_is_below_one_in_twenty():
    generator = np.random.default_rng(3)
    found = [
        compare(vectors(generator, 20, strength=0.5), vectors(generator, 30, strength=0.5), seed)
        for seed in range(400)
    ]
    for name in ("apd", "prt"):
        assert 0.03 <= np.mean([one.p[name] < 0.05 for one in found]) <= 0.07
    assert abs(np.mean([one.excess for one in found])) < 0.002
