"""Rows of bytes; `tests/properties/test_char_vocab.py` has their definition."""

import numpy as np
import pytest

from elmokit.text.char_vocab import CharVocab, CharVocabConfig


def as_original(max_characters=50):
    return CharVocab(
        CharVocabConfig(max_characters=max_characters, normalization="none", truncation="byte")
    )


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
    row = as_original().encode_word(word)
    assert row[: len(begin)].tolist() == begin
    assert row.sum(dtype=int) == total
    assert row.dtype == np.uint16
    assert row.shape == (50,)


def test_sentence_boundaries_are_known_before_words_are_cut():
    vocab = as_original(5)
    assert vocab.encode_word("</S>").tolist() == vocab.sentence_end.tolist()
    assert vocab.encode_word("<S>").tolist() == vocab.sentence_begin.tolist()
    assert vocab.encode_word("<S>abc").tolist() != vocab.sentence_begin.tolist()


@pytest.mark.parametrize(("max_characters", "is_cut"), [(8, False), (7, True), (6, True)])
def test_a_character_that_just_fits_is_kept(max_characters, is_cut):
    vocab = CharVocab(CharVocabConfig(max_characters=max_characters))
    row = vocab.encode_word("한국").tolist()
    assert vocab.is_truncated("한국") == is_cut
    assert row.index(260) == (4 if is_cut else 7)
    assert vocab.max_bytes == max_characters - 2
