"""A small biLM, and settings with nothing left open, for the tests of `elmokit.tasks`."""

import torch

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.weights.model_dir import PretrainedBiLM


def toy_model(*, seed: int = 3, **settings) -> PretrainedBiLM:
    """A model with random weights."""
    config = BiLMConfig(
        char_vocab=CharVocabConfig(max_characters=16),
        char_cnn=CharCNNConfig(embedding_dim=4, filters=((1, 4), (2, 8)), num_highway=1),
        lstm=LSTMConfig(num_layers=2, cell_dim=24, projection_dim=8),
    )
    model = PretrainedBiLM(config, **settings)
    model.reset_parameters(torch.Generator().manual_seed(seed))
    return model.eval()


def full_inputs(**given) -> InputSettings:
    """Settings of a new task, but for what is given."""
    return InputSettings(**given).resolved(with_static=True)
