import gzip
import re
import struct

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.vectors.vector_files import read_vectors

DIM, BUCKETS = 3, 7
WORDS = ["</s>", "the", "강물", "bank"]


def model_bytes(
    words=WORDS, *, labels=(), matrix=None, min_characters=2, max_characters=3, quantized=False,
    version=12, kind=2, buckets=BUCKETS, dim=DIM,
):  # fmt: skip
    """A fastText model, written out by hand from the original's source."""
    if matrix is None:
        matrix = matrix_of(len(words))
    parts = [
        struct.pack("<2i", 793712314, version),
        struct.pack("<12id", dim, 5, 5, 1, 5, 1, 2, kind, buckets, min_characters,
                    max_characters, 100, 1e-4),
        struct.pack("<3i2q", len(words) + len(labels), len(words), len(labels), 100, -1),
        *(word.encode() + b"\0" + struct.pack("<qb", 9, 0) for word in words),
        *(label.encode() + b"\0" + struct.pack("<qb", 9, 1) for label in labels),
        struct.pack("<?2q", quantized, *matrix.shape),
        matrix.astype("<f4").tobytes(),
        struct.pack("<?2q", False, len(words), dim),
        bytes(4 * len(words) * max(dim, 0)),
    ]  # fmt: skip
    return b"".join(parts)


def matrix_of(num_words):
    return np.random.default_rng(1).normal(size=(num_words + BUCKETS, DIM)).astype(np.float32)


def fnv1a(text):
    value = 2166136261
    for byte in text.encode():
        signed = byte - 256 if byte > 127 else byte
        value = ((value ^ (signed & 0xFFFFFFFF)) * 16777619) & 0xFFFFFFFF
    return value


def rows_of(word, num_words, lengths=(2, 3)):
    """The rows of a word's n-grams, by the plainest way."""
    marked = f"<{word}>"
    grams = [marked[i : i + n] for n in lengths for i in range(len(marked) - n + 1)]
    return [num_words + fnv1a(gram) % BUCKETS for gram in grams]


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
    matrix = matrix_of(4)
    np.testing.assert_array_equal(vectors.values[vectors.id_of("</s>")], matrix[0])
    for number, word in enumerate(WORDS[1:], 1):
        expected = matrix[[number, *rows_of(word, 4)]].mean(axis=0)
        np.testing.assert_allclose(vectors.values[vectors.id_of(word)], expected, atol=1e-6)


def test_words_of_the_task_that_the_model_lacks_get_the_mean_of_their_ngrams(written):
    vectors = read_vectors(written(model_bytes()), only={"강가에", "river", "Bank", "the", "a\nb"})
    # a run lists its words by lines, so none with a line feed gets a vector
    assert vectors.words == ["the", "bank", "river", "강가에"]
    for word in ("river", "강가에"):
        expected = matrix_of(4)[rows_of(word, 4)].mean(axis=0)
        np.testing.assert_allclose(vectors.values[vectors.id_of(word)], expected, atol=1e-6)
    assert vectors.id_of("Bank") == vectors.id_of("bank")


GOOD = model_bytes()
MATRIX_AT = GOOD.index(matrix_of(4).tobytes())


@pytest.mark.parametrize(
    "content",
    [
        GOOD[:6], GOOD[:110], GOOD[: MATRIX_AT + 50], model_bytes(version=13),
        model_bytes(quantized=True), model_bytes(dim=4), model_bytes(buckets=8),
        model_bytes(dim=-1), model_bytes(matrix=np.full((11, 3), np.nan)),
    ],
)  # fmt: skip
def test_damage_is_told(written, content):
    path = written(content)
    with pytest.raises(FormatError, match=re.escape(str(path))):
        read_vectors(path)
