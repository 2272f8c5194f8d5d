"""The fast path against stored outputs of the two reference implementations."""

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.weights.bilm_tf import read_bilm_tf

from .oracles import HEAVY, SEEDED, SHARED, STORED, both_directions, case

CASES = [*STORED, *SEEDED, *SHARED, pytest.param(HEAVY, marks=pytest.mark.slow)]


@pytest.mark.parametrize("name", CASES)
def test_batches_and_carried_states_equal_the_reference(name, weights_dir):
    inputs = case(name)
    embedder = Embedder(read_bilm_tf(inputs.options_path, inputs.weights_path(weights_dir)))
    state, worst = None, np.zeros(len(inputs.tolerance))
    for number, batch in enumerate(inputs.batches):
        arrays, new_state = embedder.embed_batch([inputs.sentences[i] for i in batch], state=state)
        for index, layers in zip(batch, arrays, strict=True):
            expected = inputs.expected[f"layers_{index:03d}"]
            assert layers.shape == expected.shape
            if expected.shape[1]:
                worst = np.maximum(worst, np.abs(layers - expected).max(axis=(1, 2)))
        if inputs.is_stateful:
            state = new_state
        if f"h_{number:02d}" in inputs.expected:
            for letter, ours in (("h", new_state.hidden), ("c", new_state.cell)):
                reference = inputs.expected[f"{letter}_{number:02d}"]
                assert np.abs(both_directions(ours) - reference).max() <= inputs.state_tolerance
    assert (worst <= inputs.tolerance).all(), f"largest differences {worst}"


def test_alone_and_in_any_batch_within_2e_6(weights_dir):
    inputs = case("small_seeded")
    embedder = Embedder(read_bilm_tf(inputs.options_path, inputs.weights_path(weights_dir)))
    together = embedder.embed(inputs.sentences)
    backwards = embedder.embed(inputs.sentences[::-1], batch_tokens=50)[::-1]
    for index, sentence in enumerate(inputs.sentences):
        (alone,) = embedder.embed([sentence])
        for other in (together[index], backwards[index]):
            assert np.abs(alone - other).max(initial=0) <= 2e-6
