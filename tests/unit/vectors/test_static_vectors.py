"""Looking words up."""

import numpy as np

from elmokit.vectors.static_vectors import KeptVectors, StaticVectors

WORDS = ["the", "(", '"', "``", "n't"]


def test_a_word_is_looked_up_as_it_is_then_lower_case_then_in_plain_signs():
    vectors = StaticVectors(WORDS, np.eye(5, dtype=np.float32))
    found = [vectors.id_of(word) for word in ("the", "THE", "-LRB-", "“", "``", "N’T", "river")]
    assert found == [2, 2, 3, 4, 5, 6, 1]


def test_the_first_words_and_spellings_that_are_there():
    vectors = StaticVectors(WORDS, np.eye(5, dtype=np.float32))
    assert "the" in vectors
    assert "THE" not in vectors
    few = vectors.first(2)
    assert few.words == ["the", "("]
    np.testing.assert_array_equal(few.values, vectors.values[:4])
    assert vectors.first(0).values.shape == (2, 5)


def test_wanted_words_are_kept_in_all_these_forms():
    kept = KeptVectors(["The", "N’T", "“"])
    assert [word for word in WORDS if kept.wants(word)] == ["the", '"', "n't"]
