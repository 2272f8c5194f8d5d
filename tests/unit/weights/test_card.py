from elmokit import __version__
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer

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
    made = {"model_hash": model.model_hash(), "normalization": "plain-1"}
    made |= {"tokenizer": {"name": "simple", "version": "1"}, "elmokit_version": __version__}
    assert model.metadata() == made
    other = build_tokenizer("whitespace")
    named = model.metadata(tokenizer=other)["tokenizer"]
    assert named == {"name": "whitespace", "version": other.version}
