import pytest
import torch

from elmokit.embed.embedder import Embedder
from elmokit.tasks.inputs.token_inputs import TokenInputs

from ....builders.task_models import toy_model


@pytest.fixture(scope="module")
def model():
    return toy_model()


@pytest.fixture(scope="module")
def keep(model):
    """Return the layers of sentences, as kept for a training: (W, L, 2D) each."""
    embedder = Embedder.load(model)

    def keep(sentences):
        return [vectors.transpose(1, 0, 2) for vectors in embedder.embed(map(list, sentences))]

    return keep


@pytest.fixture
def build(model):
    """Return a fresh network of a task."""

    def build(kind, task, settings, *, labels=(), hidden_dims=(6,)):
        inputs = TokenInputs(settings, model.char_vocab, num_layers=3, layers_dim=16, static=None)
        network = kind(inputs, list(labels), hidden_dims, dropout=task.default_dropout)
        network.reset_parameters(torch.Generator().manual_seed(0))
        return network

    return build
