"""Small models and corpora for the tests of `elmokit.training`."""

import torch

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.corpus.shards import write_shards
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.text.lexicon import Lexicon
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.model_dir import PretrainedBiLM

FULL_SOFTMAX = SoftmaxConfig(kind="full")
WORDS = ["the", "river", "bank", "money", "boat", "is", "a", "of", "을", "강"]
VOCAB = WordVocab(["<S>", "</S>", "<UNK>", *WORDS])
NUM_WORDS = len(VOCAB)


def toy_config(*, word_input=False, num_words=NUM_WORDS, max_characters=14, **settings):
    """A biLM of a few hundred parameters whose clips act; dropout only if asked for."""
    cnn = CharCNNConfig(embedding_dim=4, filters=((1, 4), (2, 6)), num_highway=1)
    return BiLMConfig(
        char_vocab=CharVocabConfig(max_characters=max_characters),
        char_cnn=None if word_input else cnn,
        num_words=num_words if word_input else None,
        lstm=LSTMConfig(cell_dim=10, projection_dim=5, cell_clip=0.8, projection_clip=0.3),
        **{"dropout": 0.0, **settings},
    )


def toy_model(
    *, vocab=VOCAB, softmax=FULL_SOFTMAX, word_input=False, max_characters=14, gain=2.0, **settings
) -> PretrainedBiLM:
    """A model with random weights large enough that layers and directions differ clearly."""
    num_words = NUM_WORDS if vocab is None else len(vocab)
    config = toy_config(word_input=word_input, num_words=num_words, max_characters=max_characters)
    model = PretrainedBiLM(config, word_vocab=vocab, softmax_config=softmax, **settings)
    model.reset_parameters(torch.Generator().manual_seed(3))
    with torch.no_grad():
        for layer in (*model.forward_layers, *model.backward_layers):
            for parameter in layer.parameters():
                parameter.mul_(gain)
        if model.softmax is not None:
            for parameter in model.softmax.parameters():
                parameter.normal_(generator=torch.Generator().manual_seed(4))
    return model


def lexicon_model() -> PretrainedBiLM:
    """A model that reads characters and words by lists, as those of ELMoForManyLangs."""
    lexicon = Lexicon(("a", "b", "c"), ("ab", "c"))
    config = BiLMConfig(
        char_vocab=CharVocabConfig(max_characters=8, normalization="none"),
        char_cnn=CharCNNConfig(embedding_dim=3, filters=((1, 4), (2, 5)), num_highway=0),
        lexicon=lexicon.config(word_dim=4),
        lstm=LSTMConfig(cell_dim=8, projection_dim=4),
    )
    return PretrainedBiLM(config, lexicon=lexicon)


def random_sentences(num_sentences: int, *, max_words: int = 9, seed: int = 0) -> list[list[str]]:
    """Sentences of known and a few unknown words."""
    generator = torch.Generator().manual_seed(seed)
    words = [*WORDS, "unseen", "ship"]

    def draw(high: int, num: int) -> list[int]:
        return torch.randint(high, (num,), generator=generator).tolist()

    return [
        [words[index] for index in draw(len(words), 1 + length)]
        for length in draw(max_words, num_sentences)
    ]


def toy_shards(directory, sentences=None):
    """Shards of a small corpus."""
    return write_shards(random_sentences(60) if sentences is None else sentences, directory)


def write_text(path, sentences):
    """Write tokenized sentences as a text file."""
    lines = (" ".join(sentence) + "\n" for sentence in sentences)
    path.write_text("".join(lines), encoding="utf-8")
    return path
