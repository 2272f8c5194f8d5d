import pytest

import elmokit
from elmokit import __version__
from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.card import adding_version_hint, newer_version_hint
from elmokit.weights.model_dir import PretrainedBiLM

from ...builders.training_models import toy_model

CONFIG = BiLMConfig(
    char_cnn=CharCNNConfig(embedding_dim=2, filters=((1, 3),)),
    lstm=LSTMConfig(cell_dim=4, projection_dim=2),
)


def test_the_card_says_what_the_model_is():
    model = PretrainedBiLM(
        CONFIG,
        word_vocab=WordVocab(["<S>", "</S>", "<UNK>", "a"]),
        tokenizer=TokenizerConfig(name="simple", version="1"),
        training={
            "language": "ko",
            "license": "CC BY-SA 4.0",
            "perplexity": {"forward": 41.25, "backward": 42.5},
            "corpus": "lines\nof text",
            "original_options": {"lstm": {}},
        },
    )
    card = model.card()
    header = card.split("---")[1]
    assert 'language: "ko"' in header
    assert 'license: "CC BY-SA 4.0"' in header
    assert "| Perplexity | forward 41.25, backward 42.5 |" in card
    assert "| Tokenizer | simple 1 |" in card
    assert "| Normalization | plain-1 |" in card
    assert "| Vocabulary | 4 words |" in card
    assert "- corpus: lines of text\n" in card
    assert model.model_hash() in card
    assert "elmokit.Embedder.load(" in card
    assert "original_options" not in card


def test_a_model_names_itself_and_what_splits_the_text():
    model = toy_model(tokenizer=TokenizerConfig(name="simple", version="1"))
    assert model.metadata() == {
        "model_hash": model.model_hash(),
        "tokenizer": {"name": "simple", "version": "1"},
        "normalization": model.config.char_vocab.normalization,
        "elmokit_version": elmokit.__version__,
    }
    other = build_tokenizer("whitespace")
    named = model.metadata(tokenizer=other)["tokenizer"]
    assert named == {"name": "whitespace", "version": other.version}


@pytest.mark.parametrize("kind", [ConfigError, FormatError, InputError])
def test_an_error_about_a_directory_of_a_newer_version_names_both(kind):
    with pytest.raises(kind) as raised, adding_version_hint("99.1.0"):
        raise kind("wrong")
    assert str(raised.value) == f"wrong\n{newer_version_hint('99.1.0')}"
    for part in ("elmokit 99.1.0", f"this is {__version__}: install that version or a newer one."):
        assert part in str(raised.value)
