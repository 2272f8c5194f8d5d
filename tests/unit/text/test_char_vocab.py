"""Rows of bytes; `tests/properties/test_char_vocab.py` has their definition."""

import numpy as np
import pytest

from elmokit.text.char_vocab import CharVocab, CharVocabConfig


@pytest.mark.parametrize(
    ("word", "begin", "total"),
    [
        ("the", [259, 117, 105, 102, 260, 261, 261], 12588),
        ("한국", [259, 238, 150, 157, 235, 182, 174, 260, 261, 261], 12617),
        ("<S>", [259, 257, 260, 261], 13043),
        ("</S>", [259, 258, 260, 261], 13044),
        ("<s>", [259, ord("<") + 1], 12504),
    ],
)
def test_ids_are_those_of_the_released_models(word, begin, total):
    original = CharVocabConfig(normalization="none", truncation="byte")
    row = CharVocab(original).encode_word(word)
    assert row[: len(begin)].tolist() == begin
    assert row.sum(dtype=int) == total
    assert row.dtype == np.uint16
    assert row.shape == (50,)
