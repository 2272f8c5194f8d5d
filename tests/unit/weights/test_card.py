import pytest

from elmokit import __version__
from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.weights.card import adding_version_hint, newer_version_hint

from ...builders.embedding_models import toy_model


def test_the_card_says_what_the_model_is():
    model = toy_model(
        vocab=True,
        tokenizer=TokenizerConfig(name="simple", version="1"),
        training={
            "language": "ko", "license": "CC BY-SA 4.0", "corpus": "lines\nof text",
            "perplexity": {"forward": 41.25, "backward": 42.5}, "original_options": {"lstm": {}},
        },
    )  # fmt: skip
    card = model.card()
    header = card.split("---")[1]
    assert 'language: "ko"' in header
    assert 'license: "CC BY-SA 4.0"' in header
    for line in (
        "| Perplexity | forward 41.25, backward 42.5 |", "| Tokenizer | simple 1 |",
        "| Normalization | plain-1 |", "| Vocabulary | 16 words |", "- corpus: lines of text",
        f"| Model hash | `{model.model_hash()}` |",
    ):  # fmt: skip
        assert f"\n{line}\n" in card
    assert "original_options" not in card


def test_a_model_names_itself_and_what_splits_the_text():
    model = toy_model(tokenizer=TokenizerConfig(name="simple", version="1"))
    assert model.metadata() == {
        "model_hash": model.model_hash(),
        "tokenizer": {"name": "simple", "version": "1"},
        "normalization": model.config.char_vocab.normalization,
        "elmokit_version": __version__,
    }
    other = build_tokenizer("whitespace")
    named = model.metadata(tokenizer=other)["tokenizer"]
    assert named == {"name": "whitespace", "version": other.version}


@pytest.mark.parametrize("kind", [ConfigError, FormatError, InputError])
def test_an_error_about_a_directory_of_a_newer_version_names_both(kind):
    with pytest.raises(kind) as raised, adding_version_hint("99.1.0"):
        raise kind("wrong")
    assert str(raised.value) == f"wrong\n{newer_version_hint('99.1.0')}"
    assert "elmokit 99.1.0" in str(raised.value)
    assert f"this is {__version__}" in str(raised.value)
