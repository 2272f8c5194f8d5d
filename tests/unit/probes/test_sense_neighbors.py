"""Precision of neighbors, worked by hand; examples of a word in two senses."""

import pytest

from elmokit.errors import InputError
from elmokit.probes.sense_neighbors import (
    occurrences_in_senses,
    precision_at_k,
    queries_of,
    supersense,
)

from ...builders.probe_sources import TableSource, annotated

VECTORS = {"a": [1, 0], "b": [0.9, 0.1], "c": [0.1, 0.9], "d": [0, 1], "e": [0.8, 0.2]}


def play(word, pos, *senses):
    return annotated(f"{word} {senses}", word, (0, 1, "play", pos, *senses))


PLAYS = [
    play("a", "NOUN", "drama"), play("b", "NOUN", "drama"), play("c", "VERB", "game"),
    play("d", "VERB", "game"), play("e", "NOUN", "move"),
]  # fmt: skip


def score(sentences, k):
    return precision_at_k([TableSource(VECTORS)], sentences, k=k)[0]


def test_precision_and_chance_are_those_counted_by_hand():
    found = score(PLAYS, 1)
    # a <-> b, c <-> d are of one sense; e's nearest is b, of another
    assert found.sense == pytest.approx(100 * 4 / 5)
    assert found.pos == pytest.approx(100)
    # others of the same sense: 1 of 4 for a to d, 0 for e; of the same part of speech: 2 2 1 1 2
    assert found.sense_chance == pytest.approx(100 * (4 * 0.25 + 0) / 5)
    assert found.pos_chance == pytest.approx(100 * (2 + 2 + 1 + 1 + 2) / 4 / 5)
    assert (found.num_queries, found.num_pos_queries, found.k) == (5, 5, 1)
    assert found.sense_counts.tolist() == [[4, 5]]
    # of two neighbors, a b c d have one of their sense among them, e none
    assert score(PLAYS, 2).sense == pytest.approx(100 * 4 / 10)
    shared = [play("a", "NOUN", "drama", "x"), play("b", "NOUN", "x"), *PLAYS[2:4]]
    assert score(shared, 1).sense == 100  # one of several senses is enough


DRAMA, SHOW, ACT, VERB = "play%1:10:01::", "play%1:10:03::", "play%1:04:05::", "play%2:33:00::"
LONG = "was of the kind that everybody here likes"


def example(text, *senses, pos="NOUN"):
    index = next(n for n, word in enumerate(text.split()) if word.startswith("play"))
    return annotated(text, text, (index, index + 1, "play", pos, *senses))


EXAMPLES = [
    example("play !", DRAMA),
    example(f"a play {LONG}", DRAMA),
    example(f"the plays {LONG}", DRAMA),
    example(f"this play {LONG}", SHOW),
    example(f"they play {LONG}", VERB, pos="VERB"),
    example(f"his play {LONG}", ACT),
    example(f"another play {LONG}", ACT, DRAMA),
    example(f"a play {LONG}", ACT),
    annotated("9", f"a play off {LONG}", (1, 3, "play_off", "NOUN", "play_off%1:04:00::")),
]


def test_occurrences_have_their_senses_and_each_sentence_counts_once():
    every = occurrences_in_senses(EXAMPLES, "play")
    senses = [DRAMA, DRAMA, DRAMA, SHOW, VERB, ACT, f"{ACT} {DRAMA}"]
    assert [one.sense for one in every] == senses
    assert {one.word for one in every} == {"play", "plays"}
    nouns = occurrences_in_senses(EXAMPLES, "play", pos="NOUN")
    assert [one.sense for one in nouns] == [sense for sense in senses if sense != VERB]


def test_the_queries_are_in_different_senses():
    first, second = queries_of(occurrences_in_senses(EXAMPLES, "play", pos="NOUN"), "play")
    assert (first.sense, second.sense) == (DRAMA, ACT)
    assert (first.tokens[0], second.tokens[0]) == ("a", "his")  # the first is too short to tell
    with pytest.raises(InputError, match="no two senses of 'play'"):
        queries_of(occurrences_in_senses(EXAMPLES[:4], "play"), "play")
    assert [supersense(key) for key in (DRAMA, ACT, VERB, "odd")] == ["1:10", "1:04", "2:33", "odd"]
