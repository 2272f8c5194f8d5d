"""A small biLM, inputs, and settings with nothing left open, for the tests of `elmokit.tasks`."""

from pathlib import Path

import torch
from torch.nn.utils.rnn import pad_sequence

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


def saved_toy_model(tmp_path_factory) -> Path:
    """The directory of a `toy_model`."""
    path = tmp_path_factory.mktemp("model") / "bilm"
    toy_model().save(path)
    return path


def padded_texts(*lengths, dim, seed=0):
    """Texts as random vectors, these as a batch, and its mask; padding must never be seen."""
    generator = torch.Generator().manual_seed(seed)
    texts = [torch.randn(n, dim, generator=generator, dtype=torch.float64) for n in lengths]
    padded = pad_sequence(texts, batch_first=True, padding_value=torch.nan)
    return texts, padded, ~padded.isnan().any(dim=2)


ENTITIES = "Minji B-PER\nKim I-PER\nsat O\n\nby O\nBank B-LOC\n\n"
"""A file of named entities."""


def full_inputs(**given) -> InputSettings:
    """Settings of a new task, but for what is given."""
    return InputSettings(**given).resolved(with_static=True)
