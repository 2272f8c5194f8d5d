"""Nearest neighbors in context."""

import numpy as np
import pytest

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
    from elmokit.probes.neighbors import Occurrence

    senses = {"money": "m", "cash": "m", "river": "r", "water": "r"}
    return [Occurrence((first, "bank", "."), 1, sense) for first, sense in senses.items()]


@pytest.fixture
def found(occurrences, monkeypatch):
    from elmokit.probes import neighbors

    return neighbors.neighborhoods(FakeEmbedder(), occurrences, num_neighbors=2)


def test_the_nearest_is_the_one_in_like_context(found):
    nearest = {one.occurrence.tokens[0]: one.neighbors[0].tokens[0] for one in found}
    assert nearest == {"money": "cash", "cash": "money", "river": "water", "water": "river"}
    assert all(one.similarities[0] > 0.9 > 0 > one.similarities[1] for one in found)


def test_an_occurrence_is_not_its_own_neighbor(found):
    assert all(one.occurrence not in one.neighbors for one in found)


def test_the_share_of_same_sense_counts_neighbors(found):
    from elmokit.probes.neighbors import share_of_same_sense

    assert share_of_same_sense(found) == 1.0
    assert share_of_same_sense(found, among=2) == 0.5


def test_two_occurrences_have_their_plain_cosine(occurrences):
    from elmokit.probes import neighbors

    pairs = [(occurrences[0], occurrences[1]), (occurrences[0], occurrences[2])]
    near, far = (neighbors.neighborhoods(FakeEmbedder(), pair)[0].similarities[0] for pair in pairs)
    a, b = (FakeEmbedder().embed([one.tokens], layers="top")[0][1] for one in pairs[1])
    assert far == pytest.approx(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    assert near > far > -1


def test_neighbors_are_the_same_in_pieces_and_of_the_first_only(occurrences, found, monkeypatch):
    from elmokit.probes import neighbors

    monkeypatch.setattr(neighbors, "_COSINES_TOGETHER", 1)
    in_pieces = neighbors.neighborhoods(FakeEmbedder(), occurrences, num_neighbors=2)
    first = neighbors.neighborhoods(FakeEmbedder(), occurrences, of_first=1, num_neighbors=2)
    for some, whole in ((in_pieces, found), (first, found[:1])):
        assert [one.neighbors for one in some] == [one.neighbors for one in whole]
        for one, other in zip(some, whole, strict=True):
            assert one.similarities == pytest.approx(other.similarities)


def test_a_query_is_compared_in_little_memory():
    import tracemalloc

    from elmokit.probes.neighbors import find_neighbors, occurrence_in

    query = occurrence_in(["money", "bank"], "bank")
    text = [["cash", "bank", str(number)] for number in range(3000)]
    tracemalloc.start()
    find_neighbors(FakeEmbedder(), text, "bank", query=query, limit=3000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * len(text) ** 2 / 2


def test_a_single_occurrence_has_no_neighbors(occurrences):
    from elmokit.probes import neighbors

    with pytest.raises(ValueError, match=r" 1\b"):
        neighbors.neighborhoods(FakeEmbedder(), occurrences[:1])


def test_occurrences_are_found_once_a_sentence_up_to_a_limit():
    from elmokit.probes.neighbors import find_occurrences

    sentences = [["a", "bank"], ["no"], ["a", "bank"], ["bank", "bank"], ["the", "bank"]]
    found = find_occurrences(sentences, "bank", limit=2)
    assert [(o.tokens, o.index) for o in found] == [(("a", "bank"), 1), (("bank", "bank"), 0)]


def test_copies_of_the_query_do_not_use_up_the_limit():
    from elmokit.probes.neighbors import find_occurrences

    text = [["Money", "bank"], ["money", "bank", "."], ["river", "bank"]]
    found = find_occurrences(text, "bank", limit=1, query=["money", "bank"])
    assert [one.tokens for one in found] == [("river", "bank")]


def test_the_word_is_marked_within_its_context(occurrences):
    assert occurrences[0].marked() == "money [bank] ."
    assert occurrences[0].marked(context=0) == "… [bank] …"
    assert occurrences[0].marked(context=1) == "money [bank] ."


def test_neighbors_of_one_occurrence_are_those_of_its_word():
    from elmokit.probes.neighbors import find_neighbors, occurrence_in

    query = occurrence_in(["money", "bank", "."], "bank")
    text = [["water", "bank"], ["cash", "bank"], ["money", "bank", "."], ["river", "tree"]]
    (found,) = find_neighbors(FakeEmbedder(), text, "bank", query=query)
    assert found.occurrence == query
    assert [one.tokens[0] for one in found.neighbors] == ["cash", "water"]


def test_neighbors_of_all_occurrences_of_a_word():
    from elmokit.probes.neighbors import find_neighbors, spread

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
    from elmokit.probes import neighbors

    monkeypatch.setattr(neighbors, "_SENTENCES_TOGETHER", together)
    query = neighbors.Occurrence(("river", "money"), 1)
    text = [["river", "money"], [], ["cash", "water"], ["water"], ["river", "cash", "money"],
            ["cash", "water"], ["river"]]  # fmt: skip
    found = neighbors.nearest_occurrences(WordEmbedder(), query, text, num_neighbors=3)
    assert [one.marked() for one in found.neighbors] == [
        "river cash [money]", "[cash] water", "[river]",
    ]  # fmt: skip
    assert found.similarities == pytest.approx((1, 1 / 1.01**0.5, -0.99 / 1.01))


def test_of_equally_near_words_the_first_are_kept():
    from elmokit.probes.neighbors import Occurrence, nearest_occurrences

    text = [["cash"], ["cash", "water"], ["cash", "river"]]
    query = Occurrence(("cash", "cash"), 0)
    found = nearest_occurrences(WordEmbedder(), query, text, num_neighbors=2)
    assert [one.tokens for one in found.neighbors] == [("cash",), ("cash", "water")]


def test_static_neighbors_are_words():
    from elmokit.errors import InputError
    from elmokit.probes.neighbors import nearest_words
    from elmokit.vectors.static_vectors import StaticVectors

    static = StaticVectors(list(VECTORS), np.array(list(VECTORS.values()), "f4"))
    found = nearest_words(static, "Cash", num_neighbors=2)
    assert [word for word, _ in found] == ["money", "river"]
    assert found[0][1] == pytest.approx(1 / 1.01**0.5)
    assert len(nearest_words(static, "cash")) == 3
    with pytest.raises(InputError, match="'tree'"):
        nearest_words(static, "tree")


def test_what_cannot_be_found_is_told():
    from elmokit.errors import InputError
    from elmokit.probes.neighbors import find_neighbors, nearest_occurrences, occurrence_in

    with pytest.raises(InputError, match=r"'bank'.*'the river'"):
        occurrence_in(["the", "river"], "bank")
    text = [["money", "bank"], ["money", "bank"]]
    with pytest.raises(InputError, match=r"^Only one distinct sentence .*'bank'"):
        find_neighbors(FakeEmbedder(), text, "bank")
    with pytest.raises(InputError, match=r"^No sentence .*'tree'"):
        find_neighbors(FakeEmbedder(), text, "tree")
    with pytest.raises(InputError, match=r"^No other sentence .*'bank'"):
        find_neighbors(FakeEmbedder(), text, "bank", query=occurrence_in(text[0], "bank"))
    with pytest.raises(InputError, match="`limit` must be at least 2"):
        find_neighbors(FakeEmbedder(), text, "bank", limit=1)
    with pytest.raises(InputError, match="`limit` must be at least 1"):
        find_neighbors(FakeEmbedder(), text, "bank", query=occurrence_in(text[0], "bank"), limit=0)
    for count in (0, -1):
        with pytest.raises(InputError, match=rf"`num_neighbors` must be at least 1, got {count}"):
            find_neighbors(FakeEmbedder(), [*text, ["cash", "bank"]], "bank", num_neighbors=count)
        with pytest.raises(InputError, match=rf"`num_neighbors` must be at least 1, got {count}"):
            nearest_occurrences(
                FakeEmbedder(), occurrence_in(text[0], "bank"), text, num_neighbors=count
            )
    with pytest.raises(InputError, match=r"^No sentence .*'가 었 다'.*`elmokit tokenize`"):
        find_neighbors(FakeEmbedder(), text, ["가", "었", "다"])


def test_a_word_that_the_tokenizer_divides_is_found_by_its_parts():
    from elmokit.probes.neighbors import find_occurrences, neighborhoods, occurrence_in

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
    from elmokit.probes.neighbors import Occurrence, find_neighbors, nearest_occurrences

    for word in ("River", "WATER", ",", "."):
        monkeypatch.setitem(VECTORS, word, (0, 1))
    query = Occurrence(("river", "money", "cash", "water", "river"), 1)
    others = [["cash", "money"], ["river", "cash"]]
    found = nearest_occurrences(WordEmbedder(), query, [repeated, *others])
    assert [list(one.tokens) for one in found.neighbors] == others
    (found,) = find_neighbors(WordEmbedder(), [repeated, *others], "money", query=query)
    assert [list(one.tokens) for one in found.neighbors] == others[:1]
