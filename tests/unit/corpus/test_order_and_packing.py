"""Sentences into the rows of windows, and positions to go on from."""

from functools import partial

import pytest

from elmokit.corpus.order_and_packing import RowPacker, SentenceOrder, WordTable
from elmokit.corpus.shards import write_shards
from elmokit.text.char_vocab import CharVocab
from elmokit.text.word_vocab import WordVocab

from ...builders.windows import decoded


@pytest.fixture
def packed(tmp_path):
    """The words of the first windows, and the state after them."""
    word_vocab = WordVocab(["<S>", "</S>", "<UNK>", "a"])
    build_table = partial(WordTable, word_vocab=word_vocab, char_vocab=CharVocab())

    def packed(sentences, number, *, shuffle="none", tokens_per_shard=1000, **settings):
        shards = write_shards(sentences, tmp_path, tokens_per_shard=tokens_per_shard)
        order = SentenceOrder(shards, seed=0, shuffle=shuffle)
        packer = RowPacker(shards, order, build_table, **settings)
        windows = [decoded(packer.next_window(slice(None))) for _ in range(number)]
        return windows, packer.position()

    return packed


def test_rows_are_filled_as_the_original_fills_them(packed):
    letters = list(map(list, ["abc", "de", "fghijkl", "m", "nop", "qr"]))
    windows, position = packed(letters, 2, num_rows=2, num_steps=5)
    assert windows == [
        [["<S>", "a", "b", "c", "<S>"], ["<S>", "f", "g", "h", "i"]],
        [["d", "e", "<S>", "m", "<S>"], ["j", "k", "l", "<S>", "q"]],
    ]
    assert position["rows"] == [[0, 4, 3], [0, 5, 1]]  # shard, sentence, steps that are left


def test_sentences_of_different_shards_stand_side_by_side(packed):
    """A corpus of two halves that have no word in common: no stretch of it is of one half alone."""
    halves = [["a"] * 4] * 100 + [["b"] * 4] * 100
    settings = {"shuffle": "sentences", "tokens_per_shard": 100, "num_rows": 8, "num_steps": 10}
    windows, _ = packed(halves, 9, **settings)
    for window in windows:
        assert {"a", "b"} <= {word for row in window for word in row}


def test_an_order_that_changes_needs_another_state_version(tmp_path, monkeypatch):
    """States of streams are places in this order: `_STATE_VERSION` of `elmokit.corpus.stream`."""
    monkeypatch.setattr("elmokit.corpus.order_and_packing.SHARDS_TOGETHER", 2)
    sentences = [[f"w{i}"] * (1 + i % 7) for i in range(40)]
    shards = write_shards(sentences, tmp_path, tokens_per_shard=30)
    order = SentenceOrder(shards, seed=0, shuffle="sentences")
    assert [order.groups(epoch) for epoch in range(2)] == [
        [(0, 3), (1, 4), (2,)],
        [(0, 3), (2,), (1, 4)],
    ]
    assert order.sentences(0, 0)[:5].tolist() == [2, 10, 3, 11, 0]
