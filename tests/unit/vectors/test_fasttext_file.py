import gzip
import re

import numpy as np
import pytest

from elmokit.errors import FormatError, InputError
from elmokit.vectors.vector_files import read_vectors

from ...builders.fasttext_model import DIM, MATRIX, NUM_ROWS, WORDS, fasttext_model


@pytest.fixture
def written(tmp_path):
    def write(content):
        path = tmp_path / "model.bin"
        path.write_bytes(content)
        return path

    return write


def test_a_compressed_model_is_refused(tmp_path):
    (tmp_path / "model.bin.gz").write_bytes(gzip.compress(GOOD))
    with pytest.raises(InputError, match=r"model\.bin\.gz.*decompress"):
        read_vectors(tmp_path / "model.bin.gz")


def test_words_of_the_file_and_of_the_task_get_vectors(written):
    """The n-grams of a word are compared with gensim's in `tests/parity/test_vector_files.py`."""
    path = written(fasttext_model())
    vectors = read_vectors(path)
    assert vectors.words == WORDS
    assert (vectors.values[2] == MATRIX[0]).all()  # the end of a sentence has no n-grams
    some = read_vectors(path, only={"강가에", "river", "Bank", "the", "a\nb"})
    # a run lists its words by lines, so none with a line feed gets a vector
    assert some.words == ["the", "bank", "river", "강가에"]
    assert (some.values[2:4] == vectors.values[[3, 5]]).all()
    assert some.values[4:].any(axis=1).all()


GOOD = fasttext_model()
MATRIX_AT = GOOD.index(MATRIX.tobytes())


@pytest.mark.parametrize(
    "content",
    [
        GOOD[:6], GOOD[:110], GOOD[: MATRIX_AT + 50], fasttext_model(version=13),
        fasttext_model(quantized=True), fasttext_model(dim=4), fasttext_model(buckets=8),
        fasttext_model(dim=-1), fasttext_model(matrix=np.full((NUM_ROWS, DIM), np.nan, "<f4")),
    ],
)  # fmt: skip
def test_damage_is_told(written, content):
    path = written(content)
    with pytest.raises(FormatError, match=re.escape(str(path))):
        read_vectors(path)
