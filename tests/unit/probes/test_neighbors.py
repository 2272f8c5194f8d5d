"""Nearest neighbors in context."""

import tracemalloc

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.probes import neighbors
from elmokit.probes.neighbors import (
    Occurrence,
    batched,
    find_neighbors,
    find_occurrences,
    nearest_occurrences,
    nearest_words,
    neighborhoods,
    occurrence_in,
    share_of_same_sense,
    spread,
    unit_rows,
)
from elmokit.vectors.static_vectors import StaticVectors

VECTORS = {"money": (1, 0.1), "cash": (1, 0), "river": (-1, 0.1), "water": (-1, 0)}


class FakeEmbedder:
    """Gives every word the vector of its sentence's first word."""

    def embed(self, sentences, *, layers):
        assert layers == "top"
        return [np.array([VECTORS[tokens[0]]] * len(tokens), "f4") for tokens in sentences]


class WordEmbedder:
    """Gives every word a vector of its own."""

    def embed(self, sentences, *, layers):
        return [np.array([VECTORS[word] for word in tokens], "f4") for tokens in sentences]


@pytest.fixture
def occurrences():
    senses = {"money": "m", "cash": "m", "river": "r", "water": "r"}
    return [Occurrence((first, "bank", "."), 1, sense) for first, sense in senses.items()]


@pytest.fixture
def found(occurrences, monkeypatch):
    return neighborhoods(FakeEmbedder(), occurrences, num_neighbors=2)


def test_the_nearest_is_the_one_in_like_context(found):
    nearest = {one.occurrence.tokens[0]: one.neighbors[0].tokens[0] for one in found}
    assert nearest == {"money": "cash", "cash": "money", "river": "water", "water": "river"}
    assert all(one.similarities[0] > 0.9 > 0 > one.similarities[1] for one in found)


def test_an_occurrence_is_not_its_own_neighbor(found):
    assert all(one.occurrence not in one.neighbors for one in found)


def test_the_share_of_same_sense_counts_neighbors(found):
    assert share_of_same_sense(found) == 1.0
    assert share_of_same_sense(found, among=2) == 0.5


def test_two_occurrences_have_their_plain_cosine(occurrences):
    pairs = [(occurrences[0], occurrences[1]), (occurrences[0], occurrences[2])]
    near, far = (neighborhoods(FakeEmbedder(), pair)[0].similarities[0] for pair in pairs)
    a, b = (FakeEmbedder().embed([one.tokens], layers="top")[0][1] for one in pairs[1])
    assert far == pytest.approx(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    assert near > far > -1


def test_neighbors_are_the_same_in_pieces_and_of_the_first_only(occurrences, found, monkeypatch):
    monkeypatch.setattr(neighbors, "_COSINES_TOGETHER", 1)
    in_pieces = neighborhoods(FakeEmbedder(), occurrences, num_neighbors=2)
    first = neighborhoods(FakeEmbedder(), occurrences, of_first=1, num_neighbors=2)
    for some, whole in ((in_pieces, found), (first, found[:1])):
        assert [one.neighbors for one in some] == [one.neighbors for one in whole]
        for one, other in zip(some, whole, strict=True):
            assert one.similarities == pytest.approx(other.similarities)


def test_a_query_is_compared_in_little_memory():
    query = occurrence_in(["money", "bank"], "bank")
    text = [["cash", "bank", str(number)] for number in range(3000)]
    tracemalloc.start()
    find_neighbors(FakeEmbedder(), text, "bank", query=query, limit=3000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * len(text) ** 2 / 2


def test_occurrences_are_found_once_a_sentence_up_to_a_limit():
    sentences = [["a", "bank"], ["no"], ["a", "bank"], ["bank", "bank"], ["the", "bank"]]
    found = find_occurrences(sentences, "bank", limit=2)
    assert [(o.tokens, o.index) for o in found] == [(("a", "bank"), 1), (("bank", "bank"), 0)]


def test_copies_of_the_query_do_not_use_up_the_limit():
    text = [["Money", "bank"], ["money", "bank", "."], ["river", "bank"]]
    found = find_occurrences(text, "bank", limit=1, query=["money", "bank"])
    assert [one.tokens for one in found] == [("river", "bank")]


def test_the_word_is_marked_within_its_context(occurrences):
    assert occurrences[0].marked() == "money [bank] ."
    assert occurrences[0].marked(context=0) == "… [bank] …"
    assert occurrences[0].marked(context=1) == "money [bank] ."


def test_neighbors_of_one_occurrence_are_those_of_its_word():
    query = occurrence_in(["money", "bank", "."], "bank")
    text = [["water", "bank"], ["cash", "bank"], ["money", "bank", "."], ["river", "tree"]]
    (found,) = find_neighbors(FakeEmbedder(), text, "bank", query=query)
    assert found.occurrence == query
    assert [one.tokens[0] for one in found.neighbors] == ["cash", "water"]


def test_neighbors_of_all_occurrences_of_a_word():
    text = [[first, "bank"] for first in VECTORS]
    found = find_neighbors(FakeEmbedder(), text, "bank", num_neighbors=1)
    assert [one.neighbors[0].tokens[0] for one in found] == ["cash", "money", "water", "river"]
    assert len(find_neighbors(FakeEmbedder(), text, "bank", limit=2)) == 2
    shown = spread(found, 2)
    assert len(shown) == 2
    assert shown[0].similarities[0] == max(one.similarities[0] for one in found)
    ranked = sorted(found, key=lambda one: -one.similarities[0])
    assert spread(found, 1) == ranked[:1]
    assert [*map(ranked.index, spread(found, len(found) - 1))][-1] == len(found) - 1
    assert spread(found, 9) == sorted(found, key=lambda one: -one.similarities[0])


@pytest.mark.parametrize("together", [1, 1024])
def test_the_nearest_words_of_a_text_are_one_a_sentence_and_none_twice(monkeypatch, together):
    monkeypatch.setattr(neighbors, "_SENTENCES_TOGETHER", together)
    query = Occurrence(("river", "money"), 1)
    text = [["river", "money"], [], ["cash", "water"], ["water"], ["river", "cash", "money"],
            ["cash", "water"], ["river"]]  # fmt: skip
    found = nearest_occurrences(WordEmbedder(), query, text, num_neighbors=3)
    assert [one.marked() for one in found.neighbors] == [
        "river cash [money]", "[cash] water", "[river]",
    ]  # fmt: skip
    assert found.similarities == pytest.approx((1, 1 / 1.01**0.5, -0.99 / 1.01))


def test_of_equally_near_words_the_first_are_kept():
    text = [["cash"], ["cash", "water"], ["cash", "river"]]
    query = Occurrence(("cash", "cash"), 0)
    found = nearest_occurrences(WordEmbedder(), query, text, num_neighbors=2)
    assert [one.tokens for one in found.neighbors] == [("cash",), ("cash", "water")]


def test_static_neighbors_are_words():
    static = StaticVectors(list(VECTORS), np.array(list(VECTORS.values()), "f4"))
    found = nearest_words(static, "Cash", num_neighbors=2)
    assert [word for word, _ in found] == ["money", "river"]
    assert found[0][1] == pytest.approx(1 / 1.01**0.5)
    assert len(nearest_words(static, "cash")) == 3
    with pytest.raises(InputError, match="'tree'"):
        nearest_words(static, "tree")


MONEY = Occurrence(("money", "bank"), 1)


@pytest.mark.parametrize(
    ("word", "options", "message"),
    [
        ("bank", {}, "^Only one distinct sentence .*'bank'"),
        ("tree", {}, "^No sentence .*'tree'"),
        ("bank", {"query": MONEY}, "^No other sentence .*'bank'"),
        ("bank", {"limit": 1}, "`limit` must be at least 2"),
        ("bank", {"query": MONEY, "limit": 0}, "`limit` must be at least 1"),
        (["가", "었", "다"], {}, r"^No sentence .*'가 었 다'.*`elmokit tokenize`"),
    ],
)
def test_what_cannot_be_found_is_told(word, options, message):
    text = [["money", "bank"], ["money", "bank"]]
    with pytest.raises(InputError, match=message):
        find_neighbors(FakeEmbedder(), text, word, **options)


def test_no_neighbors_are_refused():
    with pytest.raises(InputError, match=r"'bank'.*'the river'"):
        occurrence_in(["the", "river"], "bank")
    text = [["money", "bank"], ["cash", "bank"]]
    for count in (0, -1):
        with pytest.raises(InputError, match=rf"`num_neighbors` must be at least 1, got {count}"):
            find_neighbors(FakeEmbedder(), text, "bank", num_neighbors=count)
        with pytest.raises(InputError, match=rf"`num_neighbors` must be at least 1, got {count}"):
            nearest_occurrences(FakeEmbedder(), MONEY, text, num_neighbors=count)


def test_a_word_that_the_tokenizer_divides_is_found_by_its_parts():
    text = [["cash", "money"], ["money", "cash", "money"], ["river", "cash", "water", "money"]]
    found = find_occurrences(text, ["cash", "money"])
    assert [(one.tokens, one.index, one.end) for one in found] == [
        (("cash", "money"), 0, 2), (("money", "cash", "money"), 1, 3),
    ]  # fmt: skip
    assert found[1].marked(context=1) == "money [cash money]"
    one = occurrence_in(["river", "cash", "money", "."], ["cash", "money"])
    assert one.vector(np.array([[9, 9], [1, 0], [3, 4], [9, 9]])).tolist() == [2, 2]
    assert len(neighborhoods(WordEmbedder(), [*found, *found], num_neighbors=1)) == 4


@pytest.mark.parametrize(
    "repeated",
    [
        ["river", "money", "cash", "water", "river"],
        ["River", "money", "cash", ",", "WATER", "river", "."],
        ["water", "river", "money", "cash", "water", "river", "cash"],  # the query is a part of it
    ],
)
def test_a_query_is_never_its_own_neighbor(repeated, monkeypatch):
    for word in ("River", "WATER", ",", "."):
        monkeypatch.setitem(VECTORS, word, (0, 1))
    query = Occurrence(("river", "money", "cash", "water", "river"), 1)
    others = [["cash", "money"], ["river", "cash"]]
    found = nearest_occurrences(WordEmbedder(), query, [repeated, *others])
    assert [list(one.tokens) for one in found.neighbors] == others
    (found,) = find_neighbors(WordEmbedder(), [repeated, *others], "money", query=query)
    assert [list(one.tokens) for one in found.neighbors] == others[:1]


def test_rows_get_length_1_and_batches_lose_nothing():
    np.testing.assert_allclose(unit_rows(np.array([[3.0, 4.0], [0, 0]])), [[0.6, 0.8], [0, 0]])
    assert list(batched(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(batched([], 2)) == []
