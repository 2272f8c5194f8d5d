import unicodedata

import numpy as np
import pytest

from elmokit.config import from_dict
from elmokit.errors import ConfigError
from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.text.normalization import normalize


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


@pytest.mark.parametrize("word", ["＜S＞", "<S>\u200b", "<\u00adS>"])
def test_what_is_a_boundary_once_it_is_normalized_is_one(word):
    vocab = CharVocab()
    normalized = normalize(word, vocab.config.normalization)
    assert vocab.encode_word(word).tolist() == vocab.encode_word(normalized).tolist()


@pytest.mark.parametrize("word", ["", "\ud800", "\udfff\ud800"])
def test_nothing_encodable_is_an_empty_word(word):
    assert as_original(5).encode_word(word).tolist() == [259, 260, 261, 261, 261]
    assert CharVocab().encode_word("\u200b").tolist() == CharVocab().encode_word("").tolist()
    assert (CharVocab().encode_word(f"a{word}b") == CharVocab().encode_word("ab")).all()


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


def test_composed_and_decomposed_text_are_one_word_unless_asked():
    composed, decomposed = "대한민국", unicodedata.normalize("NFD", "대한민국")
    assert (CharVocab().encode_word(composed) == CharVocab().encode_word(decomposed)).all()
    assert not CharVocab(CharVocabConfig(max_characters=14)).is_truncated(decomposed)
    assert (as_original().encode_word(composed) != as_original().encode_word(decomposed)).any()


def test_a_batch_is_padded_with_zeros_and_bounded():
    vocab = CharVocab()
    char_ids = vocab.encode([["a", "bc"], [], ["d"]])
    assert char_ids.shape == (3, 4, 50)
    assert char_ids.dtype == np.int64
    assert (char_ids[:, 0] == vocab.sentence_begin).all()
    assert (char_ids[0, 3] == vocab.sentence_end).all()
    assert (char_ids[1, 1] == vocab.sentence_end).all()
    assert (char_ids[0, 2] == vocab.encode_word("bc")).all()
    assert (char_ids[1, 2:] == 0).all()
    assert (char_ids[2, 3] == 0).all()
    assert (char_ids[0] > 0).all()
    bare = vocab.encode([["a"], ["b", "c"]], boundaries=False)
    assert bare.shape == (2, 2, 50)
    assert (bare[1, 1] == vocab.encode_word("c")).all()
    assert (bare[0, 1] == 0).all()


@pytest.mark.parametrize(
    ("sentences", "boundaries", "shape"),
    [([], True, (0, 0, 50)), ([[]], True, (1, 2, 50)), ([[], []], False, (2, 0, 50))],
)
def test_empty_batches(sentences, boundaries, shape):
    assert CharVocab().encode(sentences, boundaries=boundaries).shape == shape


@pytest.mark.parametrize("sentences", ["a sentence", ["a sentence"], [["ok"], "not ok"]])
def test_a_string_in_place_of_words_is_refused(sentences):
    with pytest.raises(TypeError, match=r"one string|is the string"):
        CharVocab().encode(sentences)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_characters": 2}, "from 3 .*got 2"),
        ({"normalization": "NFD"}, "none.*NFC.*plain-1.*got .NFD"),
        ({"truncation": "word"}, "character.*byte.*word"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        from_dict(CharVocabConfig, settings)
