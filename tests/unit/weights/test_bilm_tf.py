import re

import h5py
import numpy as np
import pytest

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.errors import FormatError
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.bilm_tf import write_bilm_tf
from elmokit.weights.model_dir import PretrainedBiLM, read_bilm_tf

CONFIG = BiLMConfig(
    char_vocab=CharVocabConfig(normalization="none", truncation="byte"),
    char_cnn=CharCNNConfig(embedding_dim=3, filters=((1, 4), (2, 5))),
    lstm=LSTMConfig(cell_dim=8, projection_dim=4),
)
VOCAB = WordVocab(["<S>", "</S>", "<UNK>", "the", "bank"])
NAN = np.full(4, np.nan, np.float32)


@pytest.fixture
def files(tmp_path):
    return written(PretrainedBiLM(CONFIG), tmp_path)


def written(model, directory):
    paths = directory / "options.json", directory / "weights.hdf5"
    write_bilm_tf(model, *paths)
    return paths


def change(path, name, array):
    with h5py.File(path, "a") as file:
        if name in file:
            del file[name]
        if array is not None:
            file[name] = array


def test_a_bias_is_kept_as_stored(files):
    """Adding 1 to the forget gate and taking it off again would lose these bits."""
    tiny = np.full(32, 1e-9, np.float32)
    change(files[1], "RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/B", tiny)
    model = read_bilm_tf(*files)
    assert (model.forward_layers[1].bias.detach().numpy() == tiny).all()
    gates = model.forward_layers[1].gate_bias().detach().numpy().reshape(4, 8)
    np.testing.assert_allclose(gates[:, 0], [0, 1, 0, 0], atol=1e-6)


def test_a_separate_softmax_file(tmp_path):
    model = PretrainedBiLM(CONFIG, word_vocab=VOCAB, softmax_config=SoftmaxConfig(kind="full"))
    options, weights, softmax = (tmp_path / name for name in ("o.json", "w.hdf5", "s.hdf5"))
    write_bilm_tf(model, options, weights, softmax=softmax, vocab=tmp_path / "vocab.txt")
    assert read_bilm_tf(options, weights).softmax is None
    again = read_bilm_tf(options, weights, vocab=tmp_path / "vocab.txt", softmax=softmax)
    assert again.model_hash() == model.model_hash()
    assert again.softmax.weight.equal(model.softmax.weight)


@pytest.mark.parametrize(
    ("name", "array", "named"),
    [
        ("RNN_1", None, r"RNN_1/.*\(8, 32\)"),
        ("CNN/b_cnn_0", np.zeros(4, np.int64), "int64.*float32"),
        ("CNN/b_cnn_0", NAN, "not finite"), ("CNN/b_cnn_2", np.zeros(4), "no place"),
    ],
)  # fmt: skip
def test_datasets_that_do_not_fit_are_named(files, name, array, named):
    change(files[1], name, array)
    with pytest.raises(FormatError, match=rf"/weights\.hdf5: .*`{name}.*") as raised:
        read_bilm_tf(*files)
    assert re.search(named, str(raised.value))


def test_a_vocabulary_of_another_model(tmp_path):
    softmax = SoftmaxConfig(kind="full")
    paths = written(PretrainedBiLM(CONFIG, num_words=6, softmax_config=softmax), tmp_path)
    VOCAB.write(tmp_path / "vocab.txt")
    with pytest.raises(FormatError, match=r"5 words.* 6;"):
        read_bilm_tf(*paths, vocab=tmp_path / "vocab.txt")
