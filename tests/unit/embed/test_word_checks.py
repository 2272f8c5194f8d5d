"""Words that a model reads otherwise than in its training are told, once, with counts."""

import pytest

from elmokit.embed.embedder import Embedder
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.model_dir import PretrainedBiLM

from ...builders.embedding_models import toy_model

GLUED_TEXT = "I sat by the bank. The river is wide, isn't it? Dr. Kim went."
GLUED = GLUED_TEXT.split()
SPLIT_TEXT = "Mr. Kim of the U.S. sat by Dr. Lee , e.g. at 3. No. 4 ..."


def messages(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.fixture
def embedder():
    return Embedder(toy_model(tokenizer=TokenizerConfig(name="simple:en")))


def test_glued_punctuation_is_told_once_with_counts_and_an_example(embedder, caplog):
    for _ in range(2):
        embedder.embed([GLUED, ["by", "the", "river"]])
    (message,) = messages(caplog)
    assert "4 of 17 words" in message
    assert "'simple'" in message
    assert "'bank.' (bank .)" in message


@pytest.mark.parametrize(
    "sentence",
    [
        GLUED_TEXT,  # the tokenizer splits it
        ["I", "sat", "by", "the", "bank", "."],
        # as the tokenizer would write it
        SPLIT_TEXT.split(),
        [*GLUED, *(200 * ["river"])],  # rare enough to be part of the text
        [],
    ],
)
def test_words_as_in_training_are_not(embedder, caplog, sentence):
    embedder.embed([sentence])
    assert messages(caplog) == []


def test_a_model_of_text_between_white_space_warns_of_raw_strings_once(caplog):
    embedder = Embedder(toy_model())
    for _ in range(2):
        embedder.embed([GLUED_TEXT])
    (message,) = messages(caplog)
    assert "'bank.'" in message
    assert "tokenized" in message


def test_words_that_are_cut_are_told_once_with_counts(embedder, caplog):
    long = "ㅋ" * 300  # 900 bytes, of which a row of the toy model holds 14
    for state in ("reset", "carry"):
        embedder.embed([f"{long} {long} bank", ["a"]], state=state)
    embedder.embed_batch([[long]])
    (message,) = messages(caplog)
    assert "2 of 4 so far" in message
    assert "14 bytes" in message


def test_sentences_in_the_place_of_words_are_told_once(embedder, caplog):
    embedder.embed([["I sat by"], ["the bank"]])
    assert "list of strings" in caplog.text
    assert "'I sat by'" in caplog.text
    caplog.clear()
    embedder.embed([["I sat by"]])
    assert "list of strings" not in caplog.text


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
