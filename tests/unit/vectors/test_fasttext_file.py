import gzip
import re
import struct

import numpy as np
import pytest

from elmokit.errors import FormatError
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


def mean_of(word):
    """The mean of the rows of a word and of its n-grams, by the plainest way."""
    rows = [WORDS.index(word)] if word in WORDS else []
    marked = f"<{word}>"
    for gram in (marked[i : i + n] for n in (2, 3) for i in range(len(marked) - n + 1)):
        value = 2166136261
        for byte in gram.encode():
            signed = byte - 256 if byte > 127 else byte
            value = ((value ^ (signed & 0xFFFFFFFF)) * 16777619) & 0xFFFFFFFF
        rows.append(len(WORDS) + value % BUCKETS)
    return MATRIX[rows].mean(axis=0)


@pytest.fixture(params=["model.bin", "model.bin.gz"])
def written(request, tmp_path):
    def write(content):
        path = tmp_path / request.param
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path

    return write


def test_the_vector_of_a_word_is_the_mean_of_its_rows(written):
    vectors = read_vectors(written(model_bytes()))
    assert vectors.words == WORDS
    expected = [MATRIX[0], *map(mean_of, WORDS[1:])]  # the end of a sentence has no n-grams
    np.testing.assert_allclose(vectors.values[2:], expected, atol=1e-6)


def test_words_of_the_task_that_the_model_lacks_get_the_mean_of_their_ngrams(written):
    vectors = read_vectors(written(model_bytes()), only={"강가에", "river", "Bank", "the", "a\nb"})
    # a run lists its words by lines, so none with a line feed gets a vector
    assert vectors.words == ["the", "bank", "river", "강가에"]
    np.testing.assert_allclose(vectors.values[2:], [*map(mean_of, vectors.words)], atol=1e-6)
    assert vectors.id_of("Bank") == vectors.id_of("bank")


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
