"""Our biLM against the slow one, over every variant of the original's files."""

import json

import h5py
import numpy as np
import pytest
import torch

from elmokit.weights.bilm_tf import write_bilm_tf
from elmokit.weights.model_dir import read_bilm_tf

from .numpy_bilm import encode, layers_of
from .oracles import STORED, assert_same_bits, case, read_datasets, weight_generator

SENTENCES = [["I", "sat", "by", "the", "bank"], ["눈", "🙂", "x" * 70], [], ["one"]]
LSTM = {
    "dim": 12, "projection_dim": 6, "n_layers": 2, "cell_clip": 0.2, "proj_clip": 0.3,
    "use_skip_connections": True,
}  # fmt: skip
CNN = {
    "activation": "relu", "filters": [[1, 4], [3, 5]], "n_highway": 1, "embedding": {"dim": 3},
    "n_characters": 262, "max_characters_per_token": 50,
}  # fmt: skip
NUM_WORDS = 30
VARIANTS = {
    "as released": {},
    "training options": {
        "char_cnn": {"n_characters": 261},
        "top": {"n_tokens_vocab": 9, "unroll_steps": 20, "dropout": 0.25, "bidirectional": True},
    },
    "short rows, wide filter": {
        "char_cnn": {"max_characters_per_token": 7, "filters": [[7, 3], [2, 6]]}
    },
    "long rows": {"char_cnn": {"max_characters_per_token": 90}},
    "tanh without highway": {"char_cnn": {"activation": "tanh", "n_highway": None}},
    "three highways": {"char_cnn": {"n_highway": 3}},
    "no projection after the CNN": {"char_cnn": {"filters": [[2, 2], [1, 4]]}},
    "no projection in the LSTM": {"lstm": {"dim": 6}},
    "no projection at all": {"lstm": {"dim": 6}, "char_cnn": {"filters": [[2, 2], [1, 4]]}},
    "no clips": {"lstm": {"cell_clip": None, "proj_clip": None}},
    "one layer": {"lstm": {"n_layers": 1}},
    "four layers without skip connections": {
        "lstm": {"n_layers": 4, "use_skip_connections": False}
    },
    "words": {"char_cnn": None},
    "words without projection": {"char_cnn": None, "lstm": {"dim": 6}},
    "words, one layer, no clips": {
        "char_cnn": None,
        "lstm": {"n_layers": 1, "cell_clip": None, "proj_clip": None},
    },
}


def options_of(variant):
    """The options of a variant; a value None takes a key away."""
    changes = VARIANTS[variant]
    options = {"lstm": LSTM | changes.get("lstm", {}), **changes.get("top", {})}
    cnn = changes.get("char_cnn", {})
    if cnn is not None:
        options["char_cnn"] = CNN | cnn
    return json.loads(json.dumps(options), object_hook=_without_none)


def _without_none(table):
    return {key: value for key, value in table.items() if value is not None}


def random_arrays(options):
    """Weights in the original's layout; the clips act."""
    arrays = dict(weight_generator().generate(options, 7, lstm_gain=2.0, proj_gain=2.0))
    if "char_cnn" not in options:
        shape = NUM_WORDS, options["lstm"]["projection_dim"]
        arrays["embedding"] = np.random.default_rng(7).normal(0, 0.6, shape).astype(np.float32)
    return arrays


def write_files(directory, options, arrays):
    (directory / "options.json").write_text(json.dumps(options))
    with h5py.File(directory / "weights.hdf5", "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return directory / "options.json", directory / "weights.hdf5"


def compare(model, options, arrays, *, atol):
    """Run the sentences through both and compare all layers, boundaries included."""
    if "char_cnn" in options:
        size = options["char_cnn"]["max_characters_per_token"]
        rows = [encode(sentence, size) for sentence in SENTENCES]
        ids = model.encode(SENTENCES)
    else:
        rows = [np.arange(3, 3 + length) * 5 % NUM_WORDS for length in (7, 4, 2, 1)]
        ids = torch.zeros(len(rows), 7, dtype=torch.int64)
        for row, lines in zip(ids, rows, strict=True):
            row[: len(lines)] = torch.from_numpy(lines + 1)
    with torch.inference_mode():
        layers = model(ids).layers.numpy()
    for number, row in enumerate(rows):
        expected = layers_of(options, arrays, row)
        np.testing.assert_allclose(layers[:, number, : len(row)], expected, atol=atol, rtol=0)
        assert not layers[:, number, len(row) :].any()


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_equals_the_equations_and_survives_writing(variant, tmp_path):
    options = options_of(variant)
    arrays = random_arrays(options)
    model = read_bilm_tf(*write_files(tmp_path, options, arrays))
    compare(model, options, arrays, atol=3e-6)

    write_bilm_tf(model, tmp_path / "again.json", tmp_path / "again.hdf5")
    assert_same_bits(arrays, read_datasets(tmp_path / "again.hdf5"))
    assert json.loads((tmp_path / "again.json").read_text()) == options


@pytest.mark.parametrize("variant", ["one layer", "words, one layer, no clips"])
def test_single_layer_under_its_training_names(variant, tmp_path):
    options = options_of(variant)
    arrays = random_arrays(options)
    short = {name.replace("MultiRNNCell/Cell0/", ""): array for name, array in arrays.items()}
    model = read_bilm_tf(*write_files(tmp_path, options, short))
    compare(model, options, short, atol=3e-6)

    # Written under the names that the original's own inference looks for.
    write_bilm_tf(model, tmp_path / "again.json", tmp_path / "again.hdf5")
    assert_same_bits(arrays, read_datasets(tmp_path / "again.hdf5"))


def test_embedding_width_is_taken_from_the_weights_where_options_lack_it(tmp_path):
    options = options_of("as released")
    arrays = random_arrays(options)
    del options["char_cnn"]["embedding"]
    model = read_bilm_tf(*write_files(tmp_path, options, arrays))
    compare(model, options, arrays, atol=3e-6)


@pytest.mark.parametrize("name", [name for name in STORED if name.startswith("variant")])
def test_the_slow_bilm_equals_the_reference(name):
    """Keeps the slow one honest: it reproduces the stored outputs without our code."""
    inputs = case(name)
    options = json.loads(inputs.options_path.read_text())
    arrays = read_datasets(inputs.directory / "weights.hdf5")
    for index in (0, 1):
        rows = inputs.expected[f"char_ids_{index:03d}"].astype(int) - 1
        layers = layers_of(options, arrays, rows)[:, 1:-1]
        reference = inputs.expected[f"layers_{index:03d}"]
        worst = np.abs(layers - reference).max(axis=(1, 2))
        assert (worst <= inputs.tolerance).all()
