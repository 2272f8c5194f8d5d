"""What holds for every tokenizer, whatever the text."""

import copy
import os
import pickle
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit.text.normalization import normalize
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer, sentences_batch
from elmokit.text.tokenizers.registry import TOKENIZERS, TokenizerConfig, build_tokenizer

from ..builders.command_line import start_python

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


def check_tokens(tokenizer, text):
    sentences = tokenizer.sentences(text)
    assert all(sentences)
    for tokens in (tokenizer.tokenize(text), *sentences):
        assert isinstance(tokens, list)
        for token in tokens:
            assert isinstance(token, str)
            assert token.split() == [token], f"empty, or white space in {token!r}"


def test_it_is_a_tokenizer_with_name_and_version(tokenizer):
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer.name in TOKENIZERS
    assert tokenizer.version
    config = TokenizerConfig(name=tokenizer.name, version=tokenizer.version)
    assert build_tokenizer(config) is tokenizer


def test_tokens_are_never_empty_and_hold_no_white_space(tokenizer):
    for text in TEXTS:
        check_tokens(tokenizer, text)
    for blank in ("", " ", "\n", "\t\r\n \u3000"):
        assert tokenizer.tokenize(blank) == tokenizer.sentences(blank) == []


def test_a_line_break_ends_a_sentence(tokenizer):
    assert len(tokenizer.sentences("one thing\nand another\r\n\nlast")) == 3


def test_many_texts_at_once_give_the_same(tokenizer):
    assert list(sentences_batch(tokenizer, iter(TEXTS))) == [tokenizer.sentences(t) for t in TEXTS]


@given(text=any_text)
def test_any_text_is_survived(tokenizer, text):
    check_tokens(tokenizer, text)


@given(text=any_text | st.text("'\"`,. ا\u200d👍", max_size=20))
def test_tokens_are_normalized_as_what_is_scored(tokenizer, text):
    normalizing = NormalizingTokenizer(tokenizer, "plain-1")
    for tokens in (normalizing.tokenize(text), *normalizing.sentences(text)):
        assert [normalize(token, "plain-1") for token in tokens] == tokens


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


def test_copies_split_alike_and_say_their_version(tokenizer):
    expected = [tokenizer.sentences(text) for text in TEXTS]
    for copied in (pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
        assert [copied.sentences(text) for text in TEXTS] == expected
        assert copied.version == tokenizer.version
    assert len(pickle.dumps(tokenizer)) < 2000  # without caches


def test_threads_get_what_one_alone_gets(tokenizer):
    texts = [f"Dr. Kim went to the U.S. {n} times. 나는 {n}번 갔다! 눈이 온다." for n in range(20)]
    expected = [tokenizer.sentences(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: [tokenizer.sentences(text) for text in texts], range(8)):
            assert found == expected


FORK = """
import os, signal, sys, warnings
from elmokit.text.tokenizers.protocol import sentences_batch
from elmokit.text.tokenizers.registry import build_tokenizer
warnings.simplefilter("ignore")
def split():
    texts = ["Dr. Kim left. He went.", "나는 갔다. 눈이 온다."]
    return [list(sentences_batch(build_tokenizer(name), texts)) for name in sys.argv[1:]]
before = split()
child = os.fork()
if not child:
    signal.alarm(60)
    sys.exit(split() != before)
sys.exit(os.waitpid(child, 0)[1] != 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_goes_on_and_ends():
    names = [name for name in TOKENIZERS if all(map(find_spec, LIBRARIES.get(name, ())))]
    assert start_python(FORK, *names).wait(120) == 0
