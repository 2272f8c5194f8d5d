import pytest

from elmokit.corpus.preparation import PreparedText

from ....builders.training_models import VOCAB, random_sentences, toy_shards


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """A small corpus, and twelve held-out sentences."""
    folder = tmp_path_factory.mktemp("text")
    held_out = toy_shards(folder / "valid", random_sentences(12, seed=5))
    return PreparedText(toy_shards(folder / "shards"), VOCAB, held_out)
