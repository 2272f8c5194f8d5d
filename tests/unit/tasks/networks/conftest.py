import pytest

from elmokit.embed.embedder import Embedder

from ....builders.task_models import toy_model


@pytest.fixture(scope="module")
def model():
    return toy_model()


@pytest.fixture(scope="module")
def keep(model):
    """Return the layers of sentences, as kept for a training: (W, L, 2D) each."""
    embedder = Embedder.load(model)

    def keep(sentences):
        return [
            vectors.transpose(1, 0, 2)
            for vectors in embedder.embed([list(words) for words in sentences])
        ]

    return keep
