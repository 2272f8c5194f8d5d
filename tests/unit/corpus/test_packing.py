"""Sentences into the rows of windows, and positions to go on from."""

import json
from functools import partial

import numpy as np
import pytest

from elmokit.corpus.packing import RowPacker, SentenceOrder, WordTable, sentence_streams
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
        settings = {"num_rows": 2, "num_steps": 5, "num_epochs": 1} | settings
        order = SentenceOrder(shards, seed=0, shuffle=shuffle)
        return RowPacker(shards, order, build_table, **settings)

    return make


def rest_of(packer):
    """Return the words of all windows that are left."""
    windows = []
    while (window := packer.next_window(ALL)) is not None:
        windows.append(decoded(window))
    return windows


def test_rows_are_filled_as_the_original_fills_them(make_packer):
    assert rest_of(make_packer(LETTERS)) == [
        [["<S>", "a", "b", "c", "<S>"], ["<S>", "f", "g", "h", "i"]],
        [["d", "e", "<S>", "m", "<S>"], ["j", "k", "l", "<S>", "q"]],
    ]


@pytest.mark.parametrize("tokens_per_shard", [4, 1000])
def test_a_new_packer_goes_on_from_a_position(make_packer, tokens_per_shard):
    settings = {"tokens_per_shard": tokens_per_shard, "num_epochs": 3}
    packer = make_packer(LETTERS, **settings)
    packer.next_window(ALL)
    position = json.loads(json.dumps(packer.position()))
    assert position["rows"][1][2] == 3  # j, k and l are still to be read
    restored = make_packer(LETTERS, **settings)
    restored.restore(position)
    assert restored.position() == position
    left = rest_of(restored)
    assert len(left) > 4
    assert left == rest_of(packer)


def test_sentences_of_different_shards_stand_side_by_side(make_packer):
    """A corpus of two halves that have no word in common: no stretch of it is of one half alone."""
    halves = [["a"] * 4] * 100 + [["b"] * 4] * 100
    windows = rest_of(make_packer(halves, shuffle="sentences", tokens_per_shard=100,
                                  num_rows=8, num_steps=10))  # fmt: skip
    assert len(windows) > 8
    for window in windows:
        assert {"a", "b"} <= {word for row in window for word in row}


@pytest.fixture(scope="module")
def ordered(tmp_path_factory):
    sentences = [[f"w{i}"] * (1 + i % 7) for i in range(40)]
    return write_shards(sentences, tmp_path_factory.mktemp("shards"), tokens_per_shard=30)


@pytest.fixture
def pairs(monkeypatch):
    """Two shards are shuffled together."""
    monkeypatch.setattr("elmokit.corpus.packing.SHARDS_TOGETHER", 2)


@pytest.mark.parametrize("together", [2, 3, 8])
def test_each_group_reads_the_same_mixture(tmp_path, monkeypatch, together):
    shards = write_shards([["w"]] * 57, tmp_path, tokens_per_shard=3)
    monkeypatch.setattr("elmokit.corpus.packing.SHARDS_TOGETHER", together)
    order = SentenceOrder(shards, seed=0, shuffle="sentences")
    novels = set(range(len(shards) - 5, len(shards)))
    for epoch in range(5):
        groups = order.groups(epoch)
        assert len(groups) > 2
        assert sorted(shard for group in groups for shard in group) == list(range(len(shards)))
        for counts in ([len(group) for group in groups], [len(novels & {*g}) for g in groups]):
            assert max(counts) - min(counts) <= 1


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


def test_table_begins_with_the_sentence_boundaries(make_table, vocabs):
    table = make_table(["a", "z"])
    assert table.words == ["<S>", "</S>", "a", "z"]
    assert table.word_ids.tolist() == [1, 2, 4, 3]  # z is <UNK>
    char_vocab = vocabs["char_vocab"]
    np.testing.assert_array_equal(table.char_ids[0], char_vocab.sentence_begin)
    np.testing.assert_array_equal(table.char_ids[1], char_vocab.sentence_end)
    np.testing.assert_array_equal(table.char_ids[3], char_vocab.encode_word("z"))


def test_sentence_streams_run_both_ways():
    types = np.array([5, 6, 7, 8], dtype=np.int32)
    streams, begins = sentence_streams(types, np.array([0, 3, 4]))
    assert streams.tolist() == [[0, 5, 6, 7, 1, 0, 8, 1], [1, 7, 6, 5, 0, 1, 8, 0]]
    assert begins.tolist() == [0, 5, 8]


def test_window_keeps_distinct_inputs_in_the_order_of_first_use(make_table, vocabs):
    table = make_table(["q", "b", "a"])  # types 2, 3, 4
    inputs = np.array([[[0, 4, 3]], [[1, 3, 4]]])
    targets = np.array([[[4, 3, 1]], [[3, 4, 0]]])
    window = table.window(inputs, targets)
    words = ["<S>", "a", "b", "</S>"]
    np.testing.assert_array_equal(window.char_ids, vocabs["char_vocab"].encode_words(words))
    assert window.word_ids.tolist() == [1, 4, 5, 2]
    assert window.forward_inputs.tolist() == [[0, 1, 2]]
    assert window.backward_inputs.tolist() == [[3, 2, 1]]
    assert window.forward_targets.tolist() == [[4, 5, 2]]
    assert window.backward_targets.tolist() == [[5, 4, 1]]
    assert window.num_targets == 3


def test_window_does_not_depend_on_the_table(make_table):
    small, large = make_table(["b", "a"]), make_table(["q", "a", "x", "b"])
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 4, (2, 3, 4))
    targets = rng.integers(0, 4, (2, 3, 4))
    translate = large.types(small.words)
    one, other = small.window(inputs, targets), large.window(translate[inputs], translate[targets])
    for name, array in vars(one).items():
        np.testing.assert_array_equal(array, getattr(other, name), err_msg=name)
