"""What results name as their origin, and directories of newer versions."""

import pytest

import elmokit
from elmokit import __version__
from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.weights.result_metadata import adding_version_hint, newer_version_hint

from ...builders.training_models import toy_model


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
