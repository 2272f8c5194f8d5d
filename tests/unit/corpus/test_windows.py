import numpy as np
import pytest

from elmokit.corpus.windows import WordTable, sentence_streams
from elmokit.text.char_vocab import CharVocab
from elmokit.text.word_vocab import WordVocab


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
