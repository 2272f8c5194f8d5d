import re

import h5py
import numpy as np
import pytest

from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.errors import FormatError
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.bilm_tf import write_bilm_tf
from elmokit.weights.model_dir import read_bilm_tf

from ...builders.embedding_models import toy_model


def written(model, directory):
    paths = directory / "options.json", directory / "weights.hdf5"
    write_bilm_tf(model, *paths)
    return paths


def test_a_separate_softmax_file(tmp_path):
    model = toy_model(raw=True, vocab=True, softmax_config=SoftmaxConfig(kind="full"))
    options, weights, softmax = (tmp_path / name for name in ("o.json", "w.hdf5", "s.hdf5"))
    write_bilm_tf(model, options, weights, softmax=softmax, vocab=tmp_path / "vocab.txt")
    assert read_bilm_tf(options, weights).softmax is None
    again = read_bilm_tf(options, weights, vocab=tmp_path / "vocab.txt", softmax=softmax)
    assert again.model_hash() == model.model_hash()
    assert again.softmax.weight.equal(model.softmax.weight)


@pytest.mark.parametrize(
    ("values", "named"),
    [(np.zeros(4, np.int64), "int64.*float32"), (np.full(4, np.nan, np.float32), "not finite")],
)
def test_values_that_are_no_finite_floats_are_named(tmp_path, values, named):
    """Missing and surplus datasets: `tests/contracts/test_weight_formats.py`."""
    options, weights = written(toy_model(raw=True), tmp_path)
    with h5py.File(weights, "a") as file:
        del file["CNN/b_cnn_0"]
        file["CNN/b_cnn_0"] = values
    with pytest.raises(FormatError, match=r"/weights\.hdf5: .*`CNN/b_cnn_0.*") as raised:
        read_bilm_tf(options, weights)
    assert re.search(named, str(raised.value))


def test_a_vocabulary_of_another_model(tmp_path):
    softmax = SoftmaxConfig(kind="full")
    paths = written(toy_model(raw=True, num_words=6, softmax_config=softmax), tmp_path)
    WordVocab(["<S>", "</S>", "<UNK>", "the", "bank"]).write(tmp_path / "vocab.txt")
    with pytest.raises(FormatError, match=r"5 words.* 6;"):
        read_bilm_tf(*paths, vocab=tmp_path / "vocab.txt")
