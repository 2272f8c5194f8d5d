"""A small biLM for the tests of `elmokit.tasks`."""

import torch

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.weights.model_dir import PretrainedBiLM


def toy_model(*, seed: int = 3) -> PretrainedBiLM:
    """A model with random weights."""
    config = BiLMConfig(
        char_vocab=CharVocabConfig(max_characters=16),
        char_cnn=CharCNNConfig(embedding_dim=4, filters=((1, 4), (2, 8)), num_highway=1),
        lstm=LSTMConfig(num_layers=2, cell_dim=24, projection_dim=8),
    )
    model = PretrainedBiLM(config)
    model.reset_parameters(torch.Generator().manual_seed(seed))
    return model.eval()
