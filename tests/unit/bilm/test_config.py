import itertools

import pytest

from elmokit.bilm.bilm import BiLM
from elmokit.bilm.config import (
    BiLMConfig,
    CharCNNConfig,
    LSTMConfig,
    SoftmaxConfig,
    parameter_shapes,
)
from elmokit.bilm.softmax import build_softmax
from elmokit.errors import ConfigError
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.text.lexicon import LexiconConfig

CNN = CharCNNConfig(embedding_dim=3, filters=((1, 4), (2, 6)), num_highway=1)
ENCODERS = {
    "characters": {"char_cnn": CNN},
    "no projection": {"char_cnn": CharCNNConfig(filters=((1, 8),), num_highway=0)},
    "words": {"char_cnn": None, "num_words": 11},
    "lexicon": {
        "char_cnn": CNN,
        "lexicon": LexiconConfig(num_characters=9, num_words=7, word_dim=5, sha256="0" * 64),
    },
}
SOFTMAXES = (
    None,
    SoftmaxConfig(kind="full"),
    SoftmaxConfig(kind="sampled", num_samples=3),
    SoftmaxConfig(kind="adaptive"),
    SoftmaxConfig(kind="adaptive", cutoffs=(3, 9, 20, 31)),
)


@pytest.mark.parametrize(
    ("encoder", "cell_dim", "softmax"), list(itertools.product(ENCODERS, (8, 12), SOFTMAXES))
)
def test_parameters_have_the_names_and_shapes_of_the_modules(
    encoder: str, cell_dim: int, softmax: SoftmaxConfig | None
) -> None:
    lstm = LSTMConfig(cell_dim=cell_dim, projection_dim=8)
    config = BiLMConfig(lstm=lstm, **ENCODERS[encoder])
    expected = {
        name: tuple(tensor.shape)
        for name, tensor in BiLM(config, initialize=False).state_dict().items()
    }
    if softmax is not None:
        tensors = build_softmax(softmax, 40, 8).state_dict().items()
        expected |= {f"softmax.{name}": tuple(tensor.shape) for name, tensor in tensors}
    assert parameter_shapes(config, softmax, 40) == expected


def test_the_smallest_network_is_allowed_and_a_filter_as_long_as_a_word():
    config = BiLMConfig(
        char_vocab=CharVocabConfig(max_characters=3),
        char_cnn=CharCNNConfig(embedding_dim=1, filters=((3, 1),), num_highway=0),
        lstm=LSTMConfig(num_layers=1, cell_dim=1, projection_dim=1), dropout=0.0,
    )  # fmt: skip
    softmax = SoftmaxConfig(num_samples=1, cutoffs=(1, 2))
    assert parameter_shapes(config, softmax, 1)["softmax.weight"] == (1, 1)
    with pytest.raises(ConfigError, match=r"width 4 .*max_characters=3"):
        BiLMConfig(char_vocab=config.char_vocab, char_cnn=CharCNNConfig(filters=((4, 1), (1, 1))))


@pytest.mark.parametrize(
    "settings",
    [
        {"char_cnn": None}, {"num_words": 0},
        {"char_cnn": None, "num_words": 0, "lexicon": ENCODERS["lexicon"]["lexicon"]},
    ],
)  # fmt: skip
def test_a_model_reads_either_characters_or_words(settings):
    with pytest.raises(ConfigError, match=r"either `char_cnn` .*`num_words`"):
        BiLMConfig(**settings)
