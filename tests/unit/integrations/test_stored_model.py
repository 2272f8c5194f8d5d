import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.integrations.stored_model import embedder_of, files_of

from ...builders.embedding_models import random_sentences, toy_model


@pytest.mark.parametrize("words", [False, True])
def test_files_bring_the_model(words):
    embedder = Embedder(toy_model(words=words))
    again = embedder_of(files_of(embedder))
    sentences = random_sentences(5)
    for one, other in zip(again.embed(sentences), embedder.embed(sentences), strict=True):
        assert np.array_equal(one, other)
    assert again.metadata() == embedder.metadata()


def test_other_files_are_refused():
    files = files_of(Embedder(toy_model()))
    for wrong in ({**files, "../evil": b""}, {"model.safetensors": b""}):
        with pytest.raises((FormatError, FileNotFoundError)):
            embedder_of(wrong)
    files["model.safetensors"] = files["model.safetensors"][:-9]
    with pytest.raises(FormatError):
        embedder_of(files)
