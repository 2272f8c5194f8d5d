"""Our biLM against stored outputs of the two reference implementations."""

import json
from pathlib import Path

import numpy as np
import pytest

from elmokit.weights.bilm_tf import write_bilm_tf
from elmokit.weights.model_dir import load_model, read_bilm_tf

from .oracles import SEEDED, SHARED, STORED, assert_same_bits, case, read_datasets, run_case

CASES = [*STORED, *SEEDED, *SHARED]  # the released shape is in test_embedder_oracles.py
WRITTEN = ("edge_stateful", "variant_noproj", "variant_maxchars20", "small_seeded", *SHARED)


@pytest.mark.parametrize("name", CASES)
def test_layers_and_states_equal_the_reference(name, weights_dir):
    inputs = case(name)
    model = read_bilm_tf(inputs.options_path, inputs.weights_path(weights_dir))
    outputs = run_case(model, inputs)
    inputs.check_layers(outputs.layers)
    for index, ids in outputs.char_ids.items():
        np.testing.assert_array_equal(ids, inputs.expected[f"char_ids_{index:03d}"])
    for number, state in enumerate(outputs.states):
        inputs.check_state(number, state)


@pytest.mark.parametrize("name", WRITTEN)
def test_reading_and_writing_gives_the_same_bits(name, weights_dir, tmp_path):
    inputs = case(name)
    source = inputs.weights_path(weights_dir)
    model = read_bilm_tf(inputs.options_path, source)
    model.save(tmp_path / "model")
    write_bilm_tf(
        load_model(tmp_path / "model"), tmp_path / "options.json", tmp_path / "weights.hdf5"
    )

    assert_same_bits(read_datasets(source), read_datasets(tmp_path / "weights.hdf5"))
    options = json.loads(inputs.options_path.read_text())
    assert json.loads((tmp_path / "options.json").read_text()) == options


@pytest.mark.parametrize("name", ["weights_init", "weights_after_20"])
def test_training_weights_with_softmax_survive(name, tmp_path):
    source = Path(__file__).parent / "fixtures/train_tiny"
    model = read_bilm_tf(
        source / "options.json", source / f"{name}.hdf5", vocab=source / "vocab.txt"
    )
    assert model.softmax is not None
    assert model.config.dropout == 0
    write_bilm_tf(model, tmp_path / "options.json", tmp_path / "weights.hdf5")

    before = read_datasets(source / f"{name}.hdf5")
    before = {k: v for k, v in before.items() if not k.startswith("adagrad_accumulator/")}
    assert_same_bits(before, read_datasets(tmp_path / "weights.hdf5"))
    options = [json.loads((one / "options.json").read_text()) for one in (source, tmp_path)]
    assert options[0] == options[1]


@pytest.mark.parametrize("name", SHARED)
def test_published_top_layers_of_the_public_fixtures(name, weights_dir):
    """The references' own files: sentence k of every batch is stream k, state carried."""
    inputs = case(name)
    model = read_bilm_tf(inputs.options_path, inputs.weights_path(weights_dir))
    outputs = run_case(model, inputs)
    for stream in range(3):
        published = read_datasets(inputs.directory / f"lm_embeddings_{stream}.hdf5")
        assert len(published) == len(inputs.batches) == 10
        for number, batch in enumerate(inputs.batches):
            forward, backward = np.split(outputs.layers[batch[stream]][-1], 2, axis=-1)
            np.testing.assert_allclose(
                published[str(number)], np.stack((forward, backward)), atol=5e-6, rtol=0
            )


def test_published_token_vectors_of_the_public_fixture(weights_dir):
    inputs = case("fixture_allennlp")
    model = read_bilm_tf(inputs.options_path, inputs.weights_path(weights_dir))
    words = (inputs.directory / "vocab_test.txt").read_text().split()
    expected = read_datasets(inputs.directory / "elmo_token_embeddings.hdf5")["embedding"]
    ids = model.encode([words], boundaries=False)[0]
    vectors = model.encode_tokens(ids).detach().numpy()
    np.testing.assert_allclose(vectors, expected, atol=5e-6, rtol=0)
