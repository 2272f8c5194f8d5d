"""What holds for every tokenizer, whatever the text."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit.text.tokenizers.protocol import Tokenizer, sentences_batch
from elmokit.text.tokenizers.registry import TOKENIZERS, TokenizerConfig, build_tokenizer

LIBRARIES = {"english": ("pysbd", "sacremoses"), "korean": ("kiwipiepy",)}
TEXTS = [
    "",
    " \t\n",
    "Mr. O'Neill didn't pay $3.50 (or 10%) in the U.S. He left!",
    '나는 학교에 갔다. 그는 "정말?"이라고 물었다.\n눈이 온다',
    unicodedata.normalize("NFD", "한국어와 café"),
    "我爱北京。你好！ コーヒーを飲む。",
    "मैं घर जा रहा हूँ। ما اسمك؟ ฉันรักประเทศไทย",
    "👨‍👩‍👧‍👦 👍🏽🇰🇷 \u200b \u200d \ufeff e\u0301 \u00ad",
    "a\x00b \ud800 \x1b[0m \x85 \u2028 \u3000 \x1c",
    "x" * 3000,
    "(" * 500 + ". " * 500,
]
any_text = st.text(st.characters(), max_size=40) | st.text("aA.!?\"') -'s1,한。\n", max_size=30)


@pytest.fixture(scope="module", params=TOKENIZERS)
def tokenizer(request):
    for library in LIBRARIES.get(request.param, ()):
        pytest.importorskip(library)
    return build_tokenizer(request.param)


def check_tokens(tokens):
    assert isinstance(tokens, list)
    for token in tokens:
        assert isinstance(token, str)
        assert token
        assert token.split() == [token], f"white space in {token!r}"


def test_it_is_a_tokenizer_with_name_and_version(tokenizer):
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer.name in TOKENIZERS
    assert tokenizer.version
    config = TokenizerConfig(name=tokenizer.name, version=tokenizer.version)
    assert build_tokenizer(config) is tokenizer


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_tokens_are_never_empty_and_hold_no_white_space(tokenizer, text):
    check_tokens(tokenizer.tokenize(text))
    for sentence in tokenizer.sentences(text):
        assert sentence
        check_tokens(sentence)


def test_blank_text_has_no_sentence(tokenizer):
    for text in ("", " ", "\n", "\t\r\n \u3000"):
        assert tokenizer.tokenize(text) == []
        assert tokenizer.sentences(text) == []


def test_a_line_break_ends_a_sentence(tokenizer):
    assert len(tokenizer.sentences("one thing\nand another\r\n\nlast")) == 3


def test_the_same_text_gives_the_same_tokens(tokenizer):
    first = [tokenizer.sentences(text) for text in TEXTS]
    assert [tokenizer.sentences(text) for text in TEXTS] == first


def test_many_texts_at_once_give_the_same(tokenizer):
    assert list(sentences_batch(tokenizer, iter(TEXTS))) == [tokenizer.sentences(t) for t in TEXTS]


@given(text=any_text)
@settings(max_examples=50)
def test_any_text_is_survived(tokenizer, text):
    check_tokens(tokenizer.tokenize(text))
    for sentence in tokenizer.sentences(text):
        assert sentence
        check_tokens(sentence)


@given(text=any_text)
@settings(max_examples=100)
def test_whitespace_and_simple_lose_nothing(text):
    for name in ("whitespace", "simple"):
        tokenizer = build_tokenizer(name)
        kept = "".join(text.split())
        if name == "simple":
            kept = kept.replace("\u200b", "").replace("\ufeff", "")
        assert "".join(tokenizer.tokenize(text)) == kept
        assert "".join(token for part in tokenizer.sentences(text) for token in part) == kept
