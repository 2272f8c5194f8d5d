"""What results name as their origin."""

import elmokit
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer

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
