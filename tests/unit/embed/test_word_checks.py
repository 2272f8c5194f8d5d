"""Words that a model reads otherwise than in its training are told, once, with counts."""

import pytest

from elmokit.embed import word_checks
from elmokit.embed.embedder import Embedder
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.model_dir import PretrainedBiLM

from ...builders.embedding_models import toy_model

GLUED_TEXT = "I sat by the bank. The river is wide, isn't it? Dr. Kim went."
GLUED = GLUED_TEXT.split()


def messages(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.fixture(autouse=True)
def told(caplog):
    caplog.set_level("WARNING", logger=word_checks.__name__)  # a server in this process silences it


@pytest.fixture
def embedder():
    return Embedder(toy_model(tokenizer=TokenizerConfig(name="simple:en")))


LONG = "ㅋ" * 300  # 900 bytes, of which a row of the toy model holds 14


@pytest.mark.parametrize(
    ("tokenizer", "texts", "parts"),
    [
        ("simple:en", [GLUED] * 20, ("100 of 280 words", "'simple'", "'bank.'")),
        ("simple:en", [["آیا", "این", "رود", "است؟"]] * 60, ("60 of 240 words", "'است؟'")),
        ("simple:en", [f"{LONG} {LONG} bank", ["a"]], ("2 of 4 so far", "14 bytes")),
        ("simple:en", [["I sat by"], ["the bank"]], ("list of strings", "'I sat by'")),
    ],
    ids=["glued", "glued in Persian", "cut", "sentences in the place of words"],
)
def test_told_once_with_counts_and_an_example(tokenizer, texts, parts, caplog):
    embedder = Embedder(toy_model(tokenizer=TokenizerConfig(name=tokenizer)))
    for state in ("reset", "carry"):
        embedder.embed(texts, state=state)
    (message,) = messages(caplog)
    for part in parts:
        assert part in message


def test_cut_words_are_counted_among_all_that_were_read(embedder, caplog):
    for text in ("I sat", f"by {LONG}"):
        embedder.embed([text])
    assert "(1 of 4 so far)" in messages(caplog)[0]


@pytest.mark.parametrize(
    "sentence",
    [
        GLUED_TEXT,  # the tokenizer splits it
        ["I", "sat", "by", "the", "bank", "."],
        [*GLUED, *(200 * ["river"])],  # rare enough to be part of the text
        GLUED * 10,  # too few words
        [],
    ],
)
def test_words_as_in_training_are_not(embedder, caplog, sentence):
    embedder.embed([sentence])
    assert messages(caplog) == []


def test_abbreviations_of_the_vocabulary_are_not_glued(caplog):
    vocab = WordVocab.build([(word, 9) for word in ("Mr.", "Kim", "sat")])
    embedder = Embedder(PretrainedBiLM(toy_model().config, word_vocab=vocab))
    embedder.embed([["Mr.", "Kim", "sat", "."]] * 60)
    assert messages(caplog) == []


class TestUnknownWords:
    """Text of which the vocabulary has few words is in another language, or split otherwise."""

    KNOWN = ("the", "river", "is", "wide")

    @pytest.fixture
    def embedder(self):
        vocab = WordVocab.build([(word, 9) for word in self.KNOWN])
        return Embedder(PretrainedBiLM(toy_model().config, word_vocab=vocab))

    def test_told_once_with_counts_and_an_example(self, embedder, caplog):
        for _ in range(2):
            embedder.embed([["김민수는", "서울에", *self.KNOWN[:2]]] * 50)
        (message,) = messages(caplog)
        assert "100 of 200 words" in message
        assert "김민수는" in message

    @pytest.mark.parametrize(
        "sentences", [[["김민수는", "서울에"]] * 99, [["김민수는", *KNOWN]] * 50]
    )
    def test_not_told_for_few_words_and_ordinary_shares(self, sentences, embedder, caplog):
        embedder.embed(sentences)
        assert messages(caplog) == []
