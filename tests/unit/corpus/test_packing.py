"""Sentences into the rows of windows, and positions to go on from."""

import json
from functools import partial

import numpy as np
import pytest

from elmokit.corpus.packing import RowPacker, SentenceOrder, WordTable
from elmokit.corpus.shards import write_shards
from elmokit.text.char_vocab import CharVocab
from elmokit.text.word_vocab import WordVocab

from ...builders.windows import decoded

LETTERS = list(map(list, ["abc", "de", "fghijkl", "m", "nop", "qr"]))
ALL = slice(None)


@pytest.fixture
def make_packer(tmp_path):
    word_vocab = WordVocab(["<S>", "</S>", "<UNK>", "a"])
    build_table = partial(WordTable, word_vocab=word_vocab, char_vocab=CharVocab())

    def make(sentences, *, shuffle="none", tokens_per_shard=1000, **settings):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        shards = write_shards(sentences, folder, tokens_per_shard=tokens_per_shard)
        settings = {"num_rows": 2, "num_steps": 5} | settings
        order = SentenceOrder(shards, seed=0, shuffle=shuffle)
        return RowPacker(shards, order, build_table, **settings)

    return make


def windows_of(packer, number):
    """Return the words of the next windows."""
    return [decoded(packer.next_window(ALL)) for _ in range(number)]


def test_rows_are_filled_as_the_original_fills_them(make_packer):
    assert windows_of(make_packer(LETTERS), 2) == [
        [["<S>", "a", "b", "c", "<S>"], ["<S>", "f", "g", "h", "i"]],
        [["d", "e", "<S>", "m", "<S>"], ["j", "k", "l", "<S>", "q"]],
    ]


@pytest.mark.parametrize("tokens_per_shard", [4, 1000])
def test_a_new_packer_goes_on_from_a_position(make_packer, tokens_per_shard):
    settings = {"tokens_per_shard": tokens_per_shard}
    packer = make_packer(LETTERS, **settings)
    packer.next_window(ALL)
    position = json.loads(json.dumps(packer.position()))
    assert position["rows"][1][2] == 3  # j, k and l are still to be read
    restored = make_packer(LETTERS, **settings)
    restored.restore(position)
    assert restored.position() == position
    assert windows_of(restored, 9) == windows_of(packer, 9)


def test_sentences_of_different_shards_stand_side_by_side(make_packer):
    """A corpus of two halves that have no word in common: no stretch of it is of one half alone."""
    halves = [["a"] * 4] * 100 + [["b"] * 4] * 100
    settings = {"shuffle": "sentences", "tokens_per_shard": 100, "num_rows": 8, "num_steps": 10}
    for window in windows_of(make_packer(halves, **settings), 9):
        assert {"a", "b"} <= {word for row in window for word in row}


@pytest.fixture(scope="module")
def ordered(tmp_path_factory):
    sentences = [[f"w{i}"] * (1 + i % 7) for i in range(40)]
    return write_shards(sentences, tmp_path_factory.mktemp("shards"), tokens_per_shard=30)


@pytest.fixture
def pairs(monkeypatch):
    """Two shards are shuffled together."""
    monkeypatch.setattr("elmokit.corpus.packing.SHARDS_TOGETHER", 2)


def test_an_order_that_changes_needs_another_state_version(ordered, pairs):
    """States of streams are places in this order: `_STATE_VERSION` of `elmokit.corpus.stream`."""
    order = SentenceOrder(ordered, seed=0, shuffle="sentences")
    assert [order.groups(epoch) for epoch in range(2)] == [
        [(0, 3), (1, 4), (2,)],
        [(0, 3), (2,), (1, 4)],
    ]
    assert order.sentences(0, 0)[:5].tolist() == [2, 10, 3, 11, 0]


@pytest.fixture
def vocabs():
    return {
        "word_vocab": WordVocab(["<S>", "</S>", "<UNK>", "a", "b"]),
        "char_vocab": CharVocab(),
    }


@pytest.fixture
def make_table(vocabs):
    return lambda words: WordTable(words, **vocabs)


def test_window_does_not_depend_on_the_table(make_table):
    small, large = make_table(["b", "a"]), make_table(["q", "a", "x", "b"])
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 4, (2, 3, 4))
    targets = rng.integers(0, 4, (2, 3, 4))
    translate = large.types(small.words)
    one, other = small.window(inputs, targets), large.window(translate[inputs], translate[targets])
    for name, array in vars(one).items():
        np.testing.assert_array_equal(array, getattr(other, name), err_msg=name)
