"""Surprisals of words between spaces: a row a word."""

import pytest

from elmokit.corpus.readers import TextLine
from elmokit.errors import InputError
from elmokit.evaluation.surprisal import surprisal, surprisal_of_lines, typed_of
from elmokit.evaluation.tables import sentences_of_items
from elmokit.evaluation.text_scorer import TextScorer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer

from ...builders.training_models import toy_model

TEXT = " the boat,  lay by\tthe bank. "


@pytest.fixture(scope="module")
def model():
    return toy_model(tokenizer=TokenizerConfig(name="simple", version="2"))


def test_every_typed_word_has_a_row_and_all_of_its_tokens(model):
    tokens = list(surprisal(model, [TEXT], precision="fp32"))
    words = typed_of(TEXT, tokens)
    assert [word.word for word in words] == TEXT.split()
    assert [TEXT[word.start : word.end] for word in words] == TEXT.split()
    assert [word.index for word in words] == list(range(6))
    for way in ("forward", "backward", "mean"):
        of_tokens = sum(getattr(token, way) for token in tokens[:-1])
        assert sum(getattr(word, way) for word in words) == pytest.approx(of_tokens)
    assert sum(word.num_tokens for word in words) == len(tokens) - 1
    dropped = typed_of(TEXT, tokens, "drop")
    assert [word.num_tokens for word in dropped] == [1] * 6
    assert [word.word for word in typed_of(f"{TEXT}\u3000\u200b ", tokens)][-1] == "\u200b"
    assert typed_of(f"{TEXT}\u3000\u200b ", tokens)[-1].num_tokens == 0


def test_index_and_end_are_those_of_the_sentence_and_not_of_the_line(model):
    text = "— I sat. \u200b He lay there."
    tokenizer = build_tokenizer(model.tokenizer)
    scorer = TextScorer(model, top=0, precision="fp32")
    rows = surprisal_of_lines(scorer, tokenizer, [TextLine(None, 1, text)])
    words = typed_of(text, rows)
    assert [word.index for word in words] == [0, 1, 2, 3, 0, 1, 2]
    assert [word.sentence for word in words] == [0] * 4 + [1] * 3
    assert [word.is_last for word in words] == [False] * 3 + [True] + [False] * 2 + [True]


def test_words_of_items_are_single_and_in_one_place():
    with pytest.raises(InputError, match="two words at the same place"):
        sentences_of_items(["a", "a"], ["x", "y"], [1, 1])
    with pytest.raises(InputError, match="not one word"):
        sentences_of_items(["a"], ["x y"], [1])
