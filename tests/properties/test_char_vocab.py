import unicodedata

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elmokit.text.char_vocab import (
    SENTENCE_BEGIN_WORD,
    SENTENCE_END_WORD,
    CharVocab,
    CharVocabConfig,
)
from elmokit.text.normalization import normalize

words = st.text(st.characters(), max_size=30) | st.sampled_from(
    ["<S>", "</S>", "대한민국" * 5, unicodedata.normalize("NFD", "한글"), "👍🏽" * 9, "é" * 40]
)
configs = st.builds(
    CharVocabConfig,
    max_characters=st.integers(3, 60),
    normalization=st.sampled_from(["plain-1", "NFC", "none"]),
    truncation=st.sampled_from(["character", "byte"]),
)


def slow_row(word: str, config: CharVocabConfig) -> tuple[list[int], bool]:
    """The definition, one byte after the other; and whether the word was cut."""
    if word in (SENTENCE_BEGIN_WORD, SENTENCE_END_WORD):
        body = [256 if word == SENTENCE_BEGIN_WORD else 257]
        is_cut = False
    else:
        text = normalize(word, config.normalization)
        units = [character.encode("utf-8", "ignore") for character in text]
        if config.truncation == "byte":
            units = [bytes([byte]) for byte in b"".join(units)]
        body = []
        for unit in units:
            if len(body) + len(unit) > config.max_characters - 2:
                break
            body += unit
        is_cut = len(body) < len(b"".join(units))
    row = [258, *body, 259]
    return [i + 1 for i in row + [260] * (config.max_characters - len(row))], is_cut


@given(st.lists(words, max_size=8), configs)
def test_rows_follow_the_definition(batch, config):
    vocab = CharVocab(config)
    rows = zip(vocab.encode_words(batch).tolist(), map(vocab.is_truncated, batch), strict=True)
    assert list(rows) == [slow_row(word, config) for word in batch]


@given(st.lists(st.lists(words, max_size=6), max_size=5), st.booleans())
def test_a_batch_is_its_sentences_one_by_one(sentences, boundaries):
    vocab = CharVocab()
    batch = vocab.encode(sentences, boundaries=boundaries)
    for padded, sentence in zip(batch, sentences, strict=True):
        alone = vocab.encode([sentence], boundaries=boundaries)[0]
        expected = ["<S>", *sentence, "</S>"] if boundaries else sentence
        assert np.array_equal(alone, vocab.encode_words(expected))
        assert np.array_equal(padded[: len(alone)], alone)
        assert not padded[len(alone) :].any()
