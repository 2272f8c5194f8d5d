import math

import numpy as np
import pytest
import torch

from elmokit.errors import InputError
from elmokit.evaluation.surprisal import surprisal
from elmokit.evaluation.word_prediction import predict_word

from ...builders.training_models import random_sentences, toy_model

SENTENCE = next(one for one in random_sentences(20) if len(one) > 4)


@pytest.fixture(scope="module")
def model():
    return toy_model()


@pytest.mark.parametrize("state", ["warm", "reset"])
def test_both_directions_expect_a_word_as_surprisal_says(model, state):
    rows = list(surprisal(model, [SENTENCE], state=state, top=4, precision="fp32"))
    for index, word in enumerate(SENTENCE):
        found = predict_word(model, SENTENCE, index=index, top=4, state=state)
        assert (found.word, found.index, found.insert) == (word, index, False)
        for way in ("forward", "backward"):
            one, row = getattr(found, way), rows[index]
            assert -math.log2(one.probability) == pytest.approx(getattr(row, way), abs=1e-4)
            assert one.rank == getattr(row, f"{way}_rank")
            assert one.entropy == pytest.approx(getattr(row, f"{way}_entropy"), abs=1e-4)
            assert [top.word for top in one.top] == [top.word for top in getattr(row, f"{way}_top")]


def test_the_hidden_word_changes_nothing_but_rank_and_probability(model):
    other = [*SENTENCE[:2], SENTENCE[3], *SENTENCE[3:]]
    first, second = (predict_word(model, words, index=2) for words in (SENTENCE, other))
    assert first.both.top == second.both.top
    assert first.forward.entropy == second.forward.entropy


def test_an_insertion_is_between_the_words_around_it(model):
    inserted = predict_word(model, SENTENCE, index=2, insert=True)
    replaced = predict_word(model, [*SENTENCE[:2], "x", *SENTENCE[2:]], index=2)
    assert inserted.both.top == replaced.both.top
    assert (inserted.word, inserted.is_unknown, inserted.both.rank) == (None, None, None)


def test_none_is_the_next_word(model):
    found = predict_word(model, SENTENCE)
    assert (found.index, found.insert) == (len(SENTENCE), True)
    rows = list(surprisal(model, [SENTENCE], top=10, precision="fp32"))
    assert [one.word for one in found.forward.top] == [one.word for one in rows[-1].forward_top]


def test_both_are_the_product_over_the_frequency_by_rank(model):
    num_words = len(model.word_vocab)
    found = predict_word(model, SENTENCE, index=1, top=num_words)
    places = {word: row for row, word in enumerate(model.word_vocab.words)}
    forward, backward, both = (
        np.array([p for _, p in sorted((places[one.word], one.probability) for one in way.top)])
        for way in (found.forward, found.backward, found.both)
    )
    frequency = np.log((np.arange(num_words) + 2) / (np.arange(num_words) + 1))
    expected = forward * backward / frequency
    np.testing.assert_allclose(both, expected / expected.sum(), rtol=1e-4)


LAST = len(SENTENCE) - 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"index": LAST + 1}, rf"0 to {LAST} .* {LAST + 1} .*insertion.* {LAST + 1}"),
        ({"index": LAST + 2, "insert": True}, rf"0 to {LAST} .* {LAST + 1} .*insertion"),
        ({"index": -1}, "-1"),
        ({"top": 10**6}, "top"),
        ({"top": -1}, "top"),
        ({"state": "cold"}, "cold"),
    ],
)
def test_bad_options_are_told(model, options, named):
    with pytest.raises(InputError, match=named):
        predict_word(model, SENTENCE, **options)


def test_no_words_have_a_next_word_but_none_to_hide(model):
    assert predict_word(model, []).words == ()
    with pytest.raises(InputError, match=r"no words.* 0\.$"):
        predict_word(model, [], index=0)
    with pytest.raises(InputError, match=r"inserted at 0.* 1\.$"):
        predict_word(model, [], index=1, insert=True)


def test_a_model_without_softmax_predicts_nothing(model):
    with torch.no_grad(), pytest.raises(InputError, match="softmax"):
        predict_word(model.encoder(), SENTENCE)
