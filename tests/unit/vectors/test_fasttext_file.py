import gzip
import re
import struct

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.vectors.fasttext_file import Subwords
from elmokit.vectors.vector_files import read_vectors

DIM, BUCKETS = 3, 7
WORDS = ["</s>", "the", "강물", "bank"]
NUM_ROWS = len(WORDS) + BUCKETS
MATRIX = np.random.default_rng(1).normal(size=(NUM_ROWS, DIM)).astype("<f4")


def model_bytes(*, matrix=MATRIX, quantized=False, version=12, buckets=BUCKETS, dim=DIM):
    """A fastText model, written out by hand from the original's source."""
    num_words = len(WORDS)
    parts = [
        struct.pack("<2i", 793712314, version),
        struct.pack("<12id", dim, 5, 5, 1, 5, 1, 2, 2, buckets, 2, 3, 100, 1e-4),
        struct.pack("<3i2q", num_words + 1, num_words, 1, 100, -1),
        *(word.encode() + b"\0" + struct.pack("<qb", 9, 0) for word in WORDS),
        b"__label__a\0" + struct.pack("<qb", 9, 1),
        struct.pack("<?2q", quantized, *matrix.shape),
        matrix.tobytes(),
        struct.pack("<?2q", False, num_words, dim),
        bytes(4 * num_words * max(dim, 0)),
    ]
    return b"".join(parts)


@pytest.fixture(params=["model.bin", "model.bin.gz"])
def written(request, tmp_path):
    def write(content):
        path = tmp_path / request.param
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path

    return write


def test_words_of_the_file_and_of_the_task_get_vectors(written):
    """The n-grams of a word are compared with gensim's in `tests/parity/test_vector_files.py`."""
    path = written(model_bytes())
    vectors = read_vectors(path)
    assert vectors.words == WORDS
    assert (vectors.values[2] == MATRIX[0]).all()  # the end of a sentence has no n-grams
    some = read_vectors(path, only={"강가에", "river", "Bank", "the", "a\nb"})
    # a run lists its words by lines, so none with a line feed gets a vector
    assert some.words == ["the", "bank", "river", "강가에"]
    assert (some.values[2:4] == vectors.values[[3, 5]]).all()
    subwords = Subwords(len(WORDS), BUCKETS, 2, 3)
    means = [MATRIX[subwords.rows(word)].mean(axis=0) for word in some.words[2:]]
    np.testing.assert_allclose(some.values[4:], means, atol=1e-6)
    assert some.id_of("Bank") == some.id_of("bank")


GOOD = model_bytes()
MATRIX_AT = GOOD.index(MATRIX.tobytes())


@pytest.mark.parametrize(
    "content",
    [
        GOOD[:6], GOOD[:110], GOOD[: MATRIX_AT + 50], model_bytes(version=13),
        model_bytes(quantized=True), model_bytes(dim=4), model_bytes(buckets=8),
        model_bytes(dim=-1), model_bytes(matrix=np.full((NUM_ROWS, DIM), np.nan, "<f4")),
    ],
)  # fmt: skip
def test_damage_is_told(written, content):
    path = written(content)
    with pytest.raises(FormatError, match=re.escape(str(path))):
        read_vectors(path)
