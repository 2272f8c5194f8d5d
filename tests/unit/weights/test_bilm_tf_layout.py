import numpy as np
import pytest

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.weights.bilm_tf_layout import bilm_layout, softmax_layout

CONFIG = BiLMConfig(
    char_cnn=CharCNNConfig(embedding_dim=3, filters=((1, 4), (2, 5)), num_highway=1),
    lstm=LSTMConfig(cell_dim=8, projection_dim=4),
)


def test_the_released_model_has_the_published_shapes():
    shapes = {dataset.name: dataset.shape for dataset in bilm_layout(BiLMConfig())}
    assert shapes["char_embed"] == (261, 16)
    assert shapes["CNN/W_cnn_6"] == (1, 7, 16, 1024)
    assert shapes["CNN_high_1/W_carry"] == (2048, 2048)
    assert shapes["CNN_proj/W_proj"] == (2048, 512)
    assert shapes["RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_0"] == (1024, 16384)
    assert shapes["RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B"] == (16384,)
    assert shapes["RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_P_0"] == (4096, 512)
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == 93_600_848


@pytest.mark.parametrize(
    "dataset",
    [*bilm_layout(CONFIG), *softmax_layout(CONFIG, 6)],
    ids=lambda dataset: dataset.name,
)
def test_writing_undoes_reading(dataset):
    array = np.random.default_rng(0).normal(size=dataset.shape).astype(np.float32)
    assert dataset.write(dataset.read(array)).tobytes() == array.tobytes()


def test_gates_change_places_and_rows_become_columns():
    config = BiLMConfig(
        char_cnn=None, num_words=2, lstm=LSTMConfig(num_layers=1, cell_dim=2, projection_dim=1)
    )
    layout = {dataset.name: dataset for dataset in bilm_layout(config)}
    kernel = layout["RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"]
    columns = ["i0", "i1", "j0", "j1", "f0", "f1", "o0", "o1"]
    stored = np.array([["x." + c for c in columns], ["m." + c for c in columns]])
    read = kernel.read(stored)
    ours = ["i0", "i1", "f0", "f1", "j0", "j1", "o0", "o1"]
    assert read["forward_layers.0.input_weight"].T.tolist() == [["x." + c for c in ours]]
    assert read["forward_layers.0.recurrent_weight"].T.tolist() == [["m." + c for c in ours]]
    assert kernel.alias == "RNN_0/RNN/LSTMCell/W_0"
