import sys

import pytest

from elmokit.errors import MissingExtraError
from elmokit.text.tokenizers.english import EnglishTokenizer


@pytest.fixture(scope="module")
def tokenizer():
    pytest.importorskip("pysbd")
    pytest.importorskip("sacremoses")
    return EnglishTokenizer()


def test_tokens_are_those_of_moses_without_escapes(tokenizer):
    tokens = tokenizer.tokenize("Mary's 15-year-old didn't pay $5.50 & [left].")
    assert " ".join(tokens) == "Mary 's 15-year-old didn 't pay $ 5.50 & [ left ] ."


def test_sentences(tokenizer):
    sentences = tokenizer.sentences('Mr. Smith left. "Why?" she asked.\nIt was 3.5 miles.')
    assert [sentence[0] for sentence in sentences] == ["Mr.", '"', "It"]
    assert tokenizer.sentences("\n \n") == []


def test_versions_are_named(tokenizer):
    assert tokenizer.version.startswith("sacremoses ")
    assert ", pysbd " in tokenizer.version


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pysbd", None)
    with pytest.raises(MissingExtraError, match=r"pysbd.*pip install .*\[en\]"):
        EnglishTokenizer()
