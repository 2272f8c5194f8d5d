"""The fast path against stored outputs of the two reference implementations."""

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.weights.model_dir import read_bilm_tf

from .oracles import HEAVY, SEEDED, SHARED, STORED, case

CASES = [*STORED, *SEEDED, *SHARED, pytest.param(HEAVY, marks=pytest.mark.slow)]


@pytest.mark.parametrize("name", CASES)
def test_batches_and_carried_states_equal_the_reference(name, weights_dir):
    inputs = case(name)
    embedder = Embedder(read_bilm_tf(inputs.options_path, inputs.weights_path(weights_dir)))
    state, layers = None, {}
    for number, batch in enumerate(inputs.batches):
        arrays, new_state = embedder.embed_batch([inputs.sentences[i] for i in batch], state=state)
        layers.update(zip(batch, arrays, strict=True))
        state = new_state if inputs.is_stateful else None
        inputs.check_state(number, new_state)
    inputs.check_layers(layers)


def test_alone_and_in_any_batch_within_2e_6(weights_dir):
    inputs = case("small_seeded")
    embedder = Embedder(read_bilm_tf(inputs.options_path, inputs.weights_path(weights_dir)))
    together = embedder.embed(inputs.sentences)
    backwards = embedder.embed(inputs.sentences[::-1], batch_tokens=50)[::-1]
    for index, sentence in enumerate(inputs.sentences):
        (alone,) = embedder.embed([sentence])
        for other in (together[index], backwards[index]):
            assert np.abs(alone - other).max(initial=0) <= 2e-6
