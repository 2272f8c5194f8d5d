import time

import pytest

from elmokit.errors import ConfigError
from elmokit.text.tokenizers.protocol import cut_long_text
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer, tokenizer_for_model


def test_a_language_is_a_version_of_simple():
    german = TokenizerConfig(name="simple:de")
    assert german == TokenizerConfig(name="simple", version="3, de")
    assert build_tokenizer(german) is build_tokenizer("simple:de")
    assert build_tokenizer(german).version == "3, de"
    assert tokenizer_for_model(german, "simple") == german
    with pytest.raises(ConfigError, match=r"xx'.*en, de, fr, hi, tr"):
        build_tokenizer("simple:xx")
    with pytest.raises(ConfigError, match=r"'korean:de'"):
        build_tokenizer("korean:de")


def test_a_version_that_is_not_here_is_warned_about_once(caplog):
    version = f"0 of {time.monotonic()}"  # another each time, if it is run again
    config = TokenizerConfig(name="characters", version=version)
    for _ in range(2):
        assert build_tokenizer(config) is build_tokenizer("characters")
    (record,) = caplog.records
    assert f"'characters' version {version!r}, but version '1'" in record.getMessage()
    assert not config.matches(TokenizerConfig(name="characters", version="1"))
    for same in (config, TokenizerConfig(name="characters")):
        assert config.matches(same)
        assert same.matches(config)
    assert not config.matches(TokenizerConfig(name="simple"))


class TestOfAModel:
    OWN = TokenizerConfig(name="simple", version="1")

    @pytest.mark.parametrize("other", [None, "simple", TokenizerConfig(name="simple"), OWN])
    def test_its_own_keeps_its_version_even_if_named(self, other, caplog):
        assert tokenizer_for_model(self.OWN, other) == self.OWN
        assert not caplog.records

    def test_another_one_is_warned_about(self, caplog):
        assert tokenizer_for_model(self.OWN, "whitespace") == TokenizerConfig(name="whitespace")
        assert "'whitespace', but the model was trained with 'simple 1'" in caplog.text


@pytest.mark.parametrize(
    "text",
    ["", "short", "One. Two three four. Five six", "no stop at all here", "x" * 35, "  " * 20],
)
def test_long_text_is_cut_and_nothing_lost(text):
    pieces = cut_long_text(text, 10)
    assert "".join(pieces) == text
    assert all(len(piece) <= 10 for piece in pieces)
    assert cut_long_text("aaa bb. cc dd", 10) == ["aaa bb. ", "cc dd"]
    assert cut_long_text("aaa bbb ccc ddd", 10) == ["aaa bbb ", "ccc ddd"]
