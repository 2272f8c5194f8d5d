import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved model with a vocabulary."""
    from ...builders.embedding_models import toy_model

    folder = tmp_path_factory.mktemp("integrations") / "model"
    toy_model(vocab=True).save(folder)
    return folder


@pytest.fixture(scope="module")
def embedder(folder):
    from elmokit.embed.embedder import Embedder

    return Embedder.load(folder)
