"""The linear classifier: at its optimum, whatever the scale of the features."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st


def draw(seed, *, num_rows=60, dim=4, num_labels=3):
    random = np.random.default_rng(seed)
    features = random.normal(size=(num_rows, dim)).astype(np.float32)
    labels = (
        features @ random.normal(size=(dim, num_labels))
        + random.gumbel(size=(num_rows, num_labels))
    ).argmax(axis=1)
    return features, labels


def loss_of(probe, features, labels, weight, bias):
    x = (torch.from_numpy(features).double() - probe.mean) / probe.deviation
    loss = torch.nn.functional.cross_entropy(x @ weight + bias, torch.from_numpy(labels))
    return loss + weight.square().sum() / (2 * len(features))


def test_the_optimum_of_loss_and_prior_is_reached():
    from elmokit.probes.linear import GRADIENT_TOLERANCE, fit_linear

    features, labels = draw(0)
    probe = fit_linear(features, labels, 3)
    assert probe.converged
    weight, bias = (x.double().requires_grad_() for x in (probe.weight, probe.bias))
    loss_of(probe, features, labels, weight, bias).backward()
    assert weight.grad is not None
    assert bias.grad is not None
    assert float(weight.grad.abs().max()) < 1.1 * GRADIENT_TOLERANCE
    assert float(bias.grad.abs().max()) < 1.1 * GRADIENT_TOLERANCE


@given(seed=st.integers(0, 100), half=st.booleans())
def test_scale_and_offset_of_features_do_not_matter(seed, half):
    """So that no layer gains from the size of its activations."""
    from elmokit.probes.linear import fit_linear

    features, labels = draw(seed)
    random = np.random.default_rng(seed + 1)
    scaled = features * 10 ** random.uniform(-2, 1, 4).astype("f4") + random.normal(size=4).astype(
        "f4"
    )
    kind = np.float16 if half else np.float32
    plain, other = (fit_linear(x, labels, 3).weight for x in (features, scaled.astype(kind)))
    assert float((plain - other).abs().max()) < (0.3 if half else 0.02)


def test_features_are_not_changed_and_those_that_are_constant_do_no_harm():
    from elmokit.probes.linear import fit_linear

    features = np.array([[1, 5], [2, 5], [3, 5], [4, 5]], dtype=np.float32)
    before = features.copy()
    probe = fit_linear(features, np.array([0, 0, 1, 1]), 2)
    np.testing.assert_array_equal(features, before)
    assert probe.predict(features).tolist() == [0, 0, 1, 1]
    assert probe.predict(np.array([[0, 9], [9, 0]], dtype=np.float16)).tolist() == [0, 1]
    assert probe.predict(np.zeros((0, 2), dtype=np.float32)).shape == (0,)


def test_without_information_the_most_frequent_label_is_given():
    from elmokit.probes.linear import fit_linear

    probe = fit_linear(np.zeros((5, 2), dtype=np.float32), np.array([0, 1, 1, 1, 2]), 3)
    assert probe.predict(np.zeros((2, 2), dtype=np.float32)).tolist() == [1, 1]


def test_everything_is_computed_on_the_device():
    """The meta device computes shapes alone, so the first number that is read says where it is."""
    from elmokit.probes.linear import LinearProbe, fit_linear

    features, labels = draw(0)
    with pytest.raises(RuntimeError, match="meta tensor"):  # the loss
        fit_linear(features, labels, 3, device="meta")
    mean, weight, bias = (torch.zeros(shape, device="meta") for shape in (4, (4, 3), 3))
    probe = LinearProbe(mean, mean, weight, bias, num_iterations=0, converged=True)
    with pytest.raises(RuntimeError, match="meta tensor"):  # the labels
        probe.predict(features)


def test_no_rows_are_refused():
    from elmokit.probes.linear import fit_linear

    with pytest.raises(ValueError, match=r"`features` .*\(0, 2\)"):
        fit_linear(np.zeros((0, 2), dtype=np.float32), np.zeros(0, dtype=np.int64), 2)
