"""Rows of length 1; lists of some items."""

import numpy as np


def test_rows_get_length_1_and_zeros_stay():
    from elmokit.probes.rows import unit_rows

    np.testing.assert_allclose(unit_rows(np.array([[3.0, 4.0], [0, 0]])), [[0.6, 0.8], [0, 0]])


def test_batches_lose_nothing():
    from elmokit.probes.rows import batched

    assert list(batched(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(batched([], 2)) == []
