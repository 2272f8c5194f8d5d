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


def slow_row(word: str, config: CharVocabConfig) -> list[int]:
    """The definition, one byte after the other."""
    if word in (SENTENCE_BEGIN_WORD, SENTENCE_END_WORD):
        body = [256 if word == SENTENCE_BEGIN_WORD else 257]
    else:
        text = normalize(word, config.normalization)
        limit = config.max_characters - 2
        if config.truncation == "byte":
            body = list(text.encode("utf-8", "ignore")[:limit])
        else:
            body = []
            for character in text:
                encoded = character.encode("utf-8", "ignore")
                if len(body) + len(encoded) > limit:
                    break
                body += encoded
    row = [258, *body, 259]
    return [i + 1 for i in row + [260] * (config.max_characters - len(row))]


@given(st.lists(words, max_size=8), configs)
def test_rows_follow_the_definition(batch, config):
    rows = CharVocab(config).encode_words(batch)
    assert rows.tolist() == [slow_row(word, config) for word in batch]


@given(words, configs)
def test_whole_characters_come_back(word, config):
    vocab = CharVocab(config)
    row = vocab.encode_word(word).astype(int) - 1
    kept = bytes(i for i in row.tolist() if i < 256)
    text = normalize(word, config.normalization)
    encoded = text.encode("utf-8", "ignore")
    if word not in (SENTENCE_BEGIN_WORD, SENTENCE_END_WORD):
        assert encoded.startswith(kept)
        assert (len(encoded) > len(kept)) == vocab.is_truncated(word)
    if config.truncation == "character":
        kept.decode("utf-8")


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
