from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.model_dir import PretrainedBiLM

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
