import torch

from elmokit.embed import ids
from elmokit.embed.ids import batch_to_ids
from elmokit.text.char_vocab import CharVocab, CharVocabConfig


def test_rows_are_the_original_ones_without_boundaries():
    ids = batch_to_ids([["a", "é"], ["b"]])
    assert ids.shape == (2, 2, 50)
    assert ids.dtype == torch.int64
    assert ids[0, 0, :4].tolist() == [259, 98, 260, 261]
    assert ids[0, 1, :5].tolist() == [259, 0xC3 + 1, 0xA9 + 1, 260, 261]
    assert not ids[1, 1].any()


def test_default_neither_composes_nor_keeps_characters_whole():
    decomposed = batch_to_ids([["e\u0301"]])[0, 0]
    assert decomposed[:5].tolist() == [259, 102, 0xCC + 1, 0x81 + 1, 260]
    long = batch_to_ids([["x" + "한" * 16]])[0, 0]  # 49 bytes: cut inside the last syllable
    assert long[48] == "한".encode()[1] + 1


def test_words_that_our_models_normalize_are_warned_of_once(caplog):
    ids._warn.cache_clear()
    batch_to_ids([["plain", "words"], ["배"]])
    batch_to_ids([["e\u0301"]], char_vocab=CharVocab(CharVocabConfig()))
    assert caplog.messages == []
    for _ in range(2):
        batch_to_ids([["a", "“b”"], ["e\u0301"]])
    (message,) = caplog.messages
    assert "elmo.encode(sentences)" in message
