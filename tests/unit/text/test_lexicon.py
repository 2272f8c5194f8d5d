import hashlib

import numpy as np
import pytest

from elmokit.errors import FormatError
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
    assert [vocab.is_truncated(word) for word in ("aaa", "강강강", "aaab")] == [False, False, True]


def test_there_and_back(tmp_path):
    lexicon = Lexicon(("a", "\n", "\u2028", '"'), ("", "\t", "강\\"))
    (tmp_path / "lexicon.json").write_bytes(lexicon.to_bytes())
    assert Lexicon.read(tmp_path / "lexicon.json") == lexicon


def test_the_sizes_of_both_lists_and_their_hash():
    config = LEXICON.config(word_dim=5)
    assert (config.num_characters, config.num_words, config.word_dim) == (4, 3, 5)
    assert (config.character_rows, config.word_rows) == (11, 8)  # with 0, and the specials
    content = "a\nb\n강\n\u3000\n\nab\n강\naaa".encode()
    assert config.sha256 == hashlib.sha256(content).hexdigest()
    moved = Lexicon((*LEXICON.characters, "ab"), LEXICON.words[1:])
    assert moved.config(word_dim=5).sha256 != config.sha256


@pytest.mark.parametrize(
    "content",
    [
        "{", "{}", '{"characters": ["a"], "words": "ab"}',
        '{"characters": ["a", 1], "words": ["ab"]}',
    ],
)  # fmt: skip
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "lexicon.json"
    path.write_text(content)
    with pytest.raises(FormatError, match=rf"{path.name}.* Copy the whole model directory again\."):
        Lexicon.read(path)
