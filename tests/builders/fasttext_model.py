"""A fastText model, written out by hand from the original's source."""

import struct

import numpy as np

DIM, BUCKETS = 3, 7
WORDS = ["</s>", "the", "강물", "bank"]
NUM_ROWS = len(WORDS) + BUCKETS
MATRIX = np.random.default_rng(1).normal(size=(NUM_ROWS, DIM)).astype("<f4")


def fasttext_model(*, matrix=MATRIX, quantized=False, version=12, buckets=BUCKETS, dim=DIM):
    """Four words and a label, vectors of three numbers and n-grams in seven buckets."""
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
