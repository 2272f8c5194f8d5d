import numpy as np

from elmokit.text.char_vocab import CharVocabConfig
from elmokit.text.lexicon import Lexicon, LexiconVocab

LEXICON = Lexicon(("a", "b", "강", "\u3000"), ("ab", "강", "aaa"))


def test_rows_by_hand():
    """Word begin 2, characters from 7 (6 unknown), word end 3, padding 1; words from 5.

    Sentences begin with character 4 and word 2, and end with 5 and 3.
    """
    vocab = LexiconVocab(CharVocabConfig(max_characters=5, normalization="none"), LEXICON)
    rows = vocab.encode_words(
        ["ab", "강", "☃", "", "aaab", "aaa", "\u3000", "<S>", "<bos>", "</S>", "<eos>"]
    )
    assert rows.tolist() == [
        [2, 7, 8, 3, 1, 5],
        [2, 9, 3, 1, 1, 6],
        [2, 6, 3, 1, 1, 1],
        [2, 3, 1, 1, 1, 1],
        [2, 7, 7, 7, 3, 7],
        [2, 7, 7, 7, 3, 7],
        [2, 10, 3, 1, 1, 1],
        *[[2, 4, 3, 1, 1, 2]] * 2,
        *[[2, 5, 3, 1, 1, 3]] * 2,
    ]
    assert rows.dtype == vocab.dtype == np.int32


def test_there_and_back(tmp_path):
    lexicon = Lexicon(("a", "\n", "\u2028", '"'), ("", "\t", "강\\"))
    (tmp_path / "lexicon.json").write_bytes(lexicon.to_bytes())
    assert Lexicon.read(tmp_path / "lexicon.json") == lexicon
