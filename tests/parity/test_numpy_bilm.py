"""Our biLM against the slow one, over every variant of the original's files."""

import json

import h5py
import numpy as np
import pytest
import torch

from elmokit.weights.bilm_tf import write_bilm_tf
from elmokit.weights.model_dir import read_bilm_tf

from .numpy_bilm import encode, layers_of
from .oracles import STORED, case, read_datasets

SENTENCES = [["I", "sat", "by", "the", "bank"], ["눈", "🙂", "x" * 70], [], ["one"]]
LSTM = {
    "dim": 12,
    "projection_dim": 6,
    "n_layers": 2,
    "cell_clip": 0.2,
    "proj_clip": 0.3,
    "use_skip_connections": True,
}
CNN = {
    "activation": "relu",
    "filters": [[1, 4], [3, 5]],
    "n_highway": 1,
    "embedding": {"dim": 3},
    "n_characters": 262,
    "max_characters_per_token": 50,
}
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


def random_arrays(options, *, short_names=False):
    """Weights in the original's layout, written down here once more; the clips act."""
    rng = np.random.default_rng(7)
    lstm, shapes = options["lstm"], {}
    dim, cell = lstm["projection_dim"], lstm["dim"]
    if "char_cnn" in options:
        cnn = options["char_cnn"]
        width = cnn["embedding"]["dim"]
        total = sum(count for _, count in cnn["filters"])
        shapes["char_embed"] = (261, width)
        for i, (size, count) in enumerate(cnn["filters"]):
            shapes[f"CNN/W_cnn_{i}"], shapes[f"CNN/b_cnn_{i}"] = (1, size, width, count), (count,)
        for k in range(cnn.get("n_highway", 0)):
            for gate in ("carry", "transform"):
                shapes[f"CNN_high_{k}/W_{gate}"] = (total, total)
                shapes[f"CNN_high_{k}/b_{gate}"] = (total,)
        if total != dim:
            shapes["CNN_proj/W_proj"], shapes["CNN_proj/b_proj"] = (total, dim), (dim,)
    else:
        shapes["embedding"] = (NUM_WORDS, dim)
    for number in range(2):
        for level in range(lstm["n_layers"]):
            root = f"RNN_{number}/RNN/MultiRNNCell/Cell{level}/LSTMCell/"
            if short_names:
                root = f"RNN_{number}/RNN/LSTMCell/"
            shapes[root + "W_0"], shapes[root + "B"] = (2 * dim, 4 * cell), (4 * cell,)
            if cell != dim:
                shapes[root + "W_P_0"] = (cell, dim)
    scales = {1: 0.3, 2: 0.6, 4: 0.6}
    return {
        name: rng.normal(0, scales[len(shape)], shape).astype(np.float32)
        for name, shape in shapes.items()
    }


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
    again = read_datasets(tmp_path / "again.hdf5")
    assert again.keys() == arrays.keys()
    assert all(again[name].tobytes() == array.tobytes() for name, array in arrays.items())
    assert json.loads((tmp_path / "again.json").read_text()) == options


@pytest.mark.parametrize("variant", ["one layer", "words, one layer, no clips"])
def test_single_layer_under_its_training_names(variant, tmp_path):
    options = options_of(variant)
    arrays = random_arrays(options, short_names=True)
    model = read_bilm_tf(*write_files(tmp_path, options, arrays))
    compare(model, options, arrays, atol=3e-6)

    # Written under the names that the original's own inference looks for.
    write_bilm_tf(model, tmp_path / "again.json", tmp_path / "again.hdf5")
    again = read_datasets(tmp_path / "again.hdf5")
    renamed = {
        name.replace("/RNN/LSTMCell", "/RNN/MultiRNNCell/Cell0/LSTMCell"): array
        for name, array in arrays.items()
    }
    assert again.keys() == renamed.keys()
    assert all(again[name].tobytes() == array.tobytes() for name, array in renamed.items())


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
