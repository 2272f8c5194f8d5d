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
    ],
)
def test_ids_are_those_of_the_released_models(word, begin, total):
    row = as_original().encode_word(word)
    assert row[: len(begin)].tolist() == begin
    assert row.sum(dtype=int) == total
    assert row.dtype == np.uint16
    assert row.shape == (50,)


def test_sentence_boundaries_have_rows_of_their_own():
    vocab = as_original(6)
    assert vocab.encode_word("<S>").tolist() == [259, 257, 260, 261, 261, 261]
    assert vocab.encode_word("</S>").tolist() == [259, 258, 260, 261, 261, 261]
    assert vocab.sentence_begin.tolist() == vocab.encode_word("<S>").tolist()
    assert vocab.encode_word("<s>")[1] == ord("<") + 1
    assert vocab.encode_word("<UNK>")[1] == ord("<") + 1
    short = as_original(5)  # known before words are cut
    assert short.encode_word("</S>").tolist() == short.sentence_end.tolist()
    assert short.encode_word("<S>abc").tolist() != short.sentence_begin.tolist()


@pytest.mark.parametrize(
    ("truncation", "kept"),
    [("byte", "한".encode() + "국".encode()[:1]), ("character", "한".encode())],
)
def test_long_words_are_cut_where_the_config_says(truncation, kept):
    vocab = CharVocab(CharVocabConfig(max_characters=6, truncation=truncation))
    row = (vocab.encode_word("한국어").astype(int) - 1).tolist()
    assert bytes(row[1 : row.index(259)]) == kept
    assert vocab.is_truncated("한국어")
    assert not vocab.is_truncated("한")
    assert vocab.max_bytes == 4
    # a character that just fits is kept
    vocab = CharVocab(CharVocabConfig(max_characters=8))
    assert not vocab.is_truncated("한국")
    assert vocab.encode_word("한국")[7] == 260
    assert (vocab.encode_word("한국!") == vocab.encode_word("한국")).all()
