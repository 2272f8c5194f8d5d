"""Nearest neighbors in context."""

import numpy as np
import pytest


class FakeEmbedder:
    """Gives every word the vector of its sentence's first word."""

    def embed(self, sentences, *, layers):
        assert layers == "top"
        vectors = {"money": (1, 0.1), "cash": (1, 0), "river": (-1, 0.1), "water": (-1, 0)}
        return [np.array([vectors[tokens[0]]] * len(tokens), "f4") for tokens in sentences]


@pytest.fixture
def occurrences():
    from elmokit.analysis.neighbors import Occurrence

    senses = {"money": "m", "cash": "m", "river": "r", "water": "r"}
    return [Occurrence((first, "bank", "."), 1, sense) for first, sense in senses.items()]


@pytest.fixture
def found(occurrences, monkeypatch):
    from elmokit.analysis import neighbors

    return neighbors.neighborhoods(FakeEmbedder(), occurrences, num_neighbors=2)


def test_the_nearest_is_the_one_in_like_context(found):
    nearest = {one.occurrence.tokens[0]: one.neighbors[0].tokens[0] for one in found}
    assert nearest == {"money": "cash", "cash": "money", "river": "water", "water": "river"}
    assert all(one.similarities[0] > 0.9 > 0 > one.similarities[1] for one in found)


def test_an_occurrence_is_not_its_own_neighbor(found):
    assert all(one.occurrence not in one.neighbors for one in found)


def test_the_share_of_same_sense_counts_neighbors(found):
    from elmokit.analysis.neighbors import share_of_same_sense

    assert share_of_same_sense(found) == 1.0
    assert share_of_same_sense(found, among=2) == 0.5


def test_a_single_occurrence_has_no_neighbors(occurrences):
    from elmokit.analysis import neighbors

    with pytest.raises(ValueError, match="at least two"):
        neighbors.neighborhoods(FakeEmbedder(), occurrences[:1])


def test_occurrences_are_found_once_a_sentence_up_to_a_limit():
    from elmokit.analysis.neighbors import find_occurrences

    sentences = [["a", "bank"], ["no"], ["bank", "bank"], ["the", "bank"]]
    found = find_occurrences(sentences, "bank", limit=2)
    assert [(o.tokens, o.index) for o in found] == [(("a", "bank"), 1), (("bank", "bank"), 0)]


def test_the_word_is_marked_within_its_context(occurrences):
    assert occurrences[0].marked() == "money [bank] ."
    assert occurrences[0].marked(context=0) == "[bank]"
