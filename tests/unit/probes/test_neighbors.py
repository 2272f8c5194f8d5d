"""Nearest neighbors in context."""

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.probes import neighbors
from elmokit.probes.neighbors import Occurrence

VECTORS = {"money": (1, 0.1), "cash": (1, 0), "river": (-1, 0.1), "water": (-1, 0)}
VECTORS |= dict.fromkeys(("River", "WATER", ",", "."), (0, 1))


class WordEmbedder:
    """Gives every word a vector of its own."""

    def embed_stream(self, sentences, *, layers):
        assert layers == "top"
        return (np.array([VECTORS[word] for word in tokens], "f4") for tokens in sentences)


class FirstWordEmbedder(WordEmbedder):
    """Gives every word the vector of its sentence's first word."""

    def embed_stream(self, sentences, *, layers):
        firsts = (tokens[:1] * len(tokens) for tokens in sentences)
        return super().embed_stream(firsts, layers=layers)


OCCURRENCES = [
    Occurrence((first, "bank", "."), 1, sense)
    for first, sense in {"money": "m", "cash": "m", "river": "r", "water": "r"}.items()
]


@pytest.mark.parametrize(("at_once", "of_first"), [(1 << 22, None), (1, None), (1 << 22, 1)])
def test_the_nearest_is_the_one_in_like_context(monkeypatch, at_once, of_first):
    monkeypatch.setattr(neighbors, "_COSINES_TOGETHER", at_once)
    near = neighbors.neighborhoods(
        FirstWordEmbedder(), OCCURRENCES, of_first=of_first, num_neighbors=2
    )
    nearest = {one.occurrence.tokens[0]: one.neighbors[0].tokens[0] for one in near}
    expected = {"money": "cash", "cash": "money", "river": "water", "water": "river"}
    assert nearest == dict(list(expected.items())[:of_first])
    assert all(one.similarities[0] > 0.9 > 0 > one.similarities[1] for one in near)
    assert neighbors.share_of_same_sense(near) == 1.0
    marked = [near[0].occurrence.marked(context=context) for context in (None, 1, 0)]
    assert marked == ["money [bank] .", "money [bank] .", "… [bank] …"]


def test_occurrences_are_found_once_a_sentence_up_to_a_limit():
    sentences = [["a", "bank"], ["no"], ["a", "bank"], ["bank", "bank"], ["the", "bank"]]
    places = neighbors.find_occurrences(sentences, "bank", limit=2)
    assert [(o.tokens, o.index) for o in places] == [(("a", "bank"), 1), (("bank", "bank"), 0)]
    # copies of the query do not use up the limit
    text = [["Money", "bank"], ["money", "bank", "."], ["river", "bank"]]
    places = neighbors.find_occurrences(text, "bank", limit=1, query=["money", "bank"])
    assert [one.tokens for one in places] == [("river", "bank")]


def test_neighbors_of_one_occurrence_and_of_all():
    query = neighbors.occurrence_in(["money", "bank", "."], "bank")
    text = [["water", "bank"], ["cash", "bank"], ["money", "bank", "."], ["river", "tree"]]
    (near,) = neighbors.find_neighbors(FirstWordEmbedder(), text, "bank", query=query)
    assert near.occurrence == query
    assert [one.tokens[0] for one in near.neighbors] == ["cash", "water"]
    text = [[first, "bank"] for first in ("money", "cash", "river", "water")]
    every = neighbors.find_neighbors(FirstWordEmbedder(), text, "bank", num_neighbors=1)
    assert [one.neighbors[0].tokens[0] for one in every] == ["cash", "money", "water", "river"]
    ranked = sorted(every, key=lambda one: -one.similarities[0])
    assert neighbors.spread(every, 1) == ranked[:1]
    assert neighbors.spread(every, 3) == [ranked[0], ranked[2], ranked[3]]
    assert neighbors.spread(every, 9) == ranked


def test_the_nearest_words_of_a_text_are_one_a_sentence_and_none_twice():
    query = Occurrence(("river", "money"), 1)
    text = [["river", "money"], [], ["cash", "water"], ["water"], ["river", "cash", "money"],
            ["cash", "water"], ["river"]]  # fmt: skip
    near = neighbors.nearest_occurrences(WordEmbedder(), query, text, num_neighbors=3)
    marked = [one.marked() for one in near.neighbors]
    assert marked == ["river cash [money]", "[cash] water", "[river]"]
    assert near.similarities == pytest.approx((1, 1 / 1.01**0.5, -0.99 / 1.01))


@pytest.mark.parametrize(
    "repeated",
    [
        ["river", "money", "cash", "water", "river"],
        ["River", "money", "cash", ",", "WATER", "river", "."],
        ["water", "river", "money", "cash", "water", "river", "cash"],  # the query is a part of it
    ],
)
def test_a_query_is_never_its_own_neighbor(repeated):
    query = Occurrence(("river", "money", "cash", "water", "river"), 1)
    others = [["cash", "money"], ["river", "cash"]]
    near = neighbors.nearest_occurrences(WordEmbedder(), query, [repeated, *others])
    assert [list(one.tokens) for one in near.neighbors] == others
    (near,) = neighbors.find_neighbors(WordEmbedder(), [repeated, *others], "money", query=query)
    assert [list(one.tokens) for one in near.neighbors] == others[:1]
    with pytest.raises(InputError, match="no sentence but that of the word"):
        neighbors.nearest_occurrences(WordEmbedder(), query, [repeated])


@pytest.mark.parametrize("word", [["bank"], ["tree"], ["가"]])
@pytest.mark.parametrize("query", [None, Occurrence(("money", "bank"), 1)], ids=["all", "one"])
def test_what_cannot_be_found_is_told(word, query):
    with pytest.raises(InputError, match=word[0]):
        neighbors.find_neighbors(FirstWordEmbedder(), [["money", "bank"]] * 2, word, query=query)


def test_one_occurrence_has_no_neighbors():
    with pytest.raises(InputError, match="`limit` must be at least 2"):
        neighbors.find_neighbors(FirstWordEmbedder(), [["money", "bank"]] * 2, "bank", limit=1)


def test_two_occurrences_have_their_plain_cosine():
    for first, second in (OCCURRENCES[:2], OCCURRENCES[1:3]):
        near, _ = neighbors.neighborhoods(FirstWordEmbedder(), [first, second])
        a, b = (np.array(VECTORS[one.tokens[0]]) for one in (first, second))
        cosine = float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
        assert near.similarities == pytest.approx((cosine,))
