import pytest

from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.integrations.shared import embedder_of, files_of

from ...builders.embedding_models import toy_model


def test_other_files_are_refused():
    files = files_of(Embedder(toy_model()))
    with pytest.raises(FormatError, match=r"config\.json"):
        embedder_of({**files, "../evil": b""})
    files["model.safetensors"] = files["model.safetensors"][:-9]
    with pytest.raises(FormatError, match=r"/model\.safetensors"):
        embedder_of(files)
