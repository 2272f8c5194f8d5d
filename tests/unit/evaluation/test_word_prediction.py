import math

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.evaluation.surprisal import surprisal
from elmokit.evaluation.word_prediction import predict_word

from ...builders.training_models import random_sentences

SENTENCE = next(one for one in random_sentences(20) if len(one) > 4)


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


@pytest.mark.parametrize(
    "options",
    [
        {"index": len(SENTENCE)}, {"index": len(SENTENCE) + 1, "insert": True}, {"index": -1},
        {"top": 10**6}, {"top": -1}, {"state": "cold"}, {"sentence": [], "index": 0},
    ],
)  # fmt: skip
def test_places_and_options_that_are_not_there_are_refused(model, options):
    with pytest.raises(InputError):
        predict_word(model, **{"sentence": SENTENCE, **options})
