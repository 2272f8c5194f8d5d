"""Examples of a word in two senses."""

import numpy as np
import pytest

from elmokit.errors import InputError

from ...builders.probe_sources import annotated

DRAMA, SHOW, ACT, VERB = "play%1:10:01::", "play%1:10:03::", "play%1:04:05::", "play%2:33:00::"
LONG = "was of the kind that everybody here likes"


def play(name, text, *senses, pos="NOUN", lemma="play"):
    index = next(n for n, word in enumerate(text.split()) if word.startswith("play"))
    return annotated(name, text, (index, index + 1, lemma, pos, *senses))


SENTENCES = [
    play("1", "play !", DRAMA),
    play("2", f"a play {LONG}", DRAMA),
    play("3", f"the plays {LONG}", DRAMA),
    play("4", f"this play {LONG}", SHOW),
    play("5", f"they play {LONG}", VERB, pos="VERB"),
    play("6", f"his play {LONG}", ACT),
    play("7", f"another play {LONG}", ACT, DRAMA),
    play("8", f"a play {LONG}", ACT),
    annotated("9", f"a play off {LONG}", (1, 3, "play_off", "NOUN", "play_off%1:04:00::")),
]


VECTORS = {
    "a": [1, 0], "the": [0.9, 0.1], "this": [0.8, 0.3], "his": [0, 1], "they": [0.1, 1],
    "another": [0.6, 0.6],
}  # fmt: skip


class Embedder:
    """The vector of each word depends on the word before it."""

    def embed(self, sentences, *, layers):
        assert layers == "top"
        return [
            np.array([[9, 9], *(VECTORS.get(word, [5, 5]) for word in words[:-1])], "f4")
            for words in sentences
        ]


def test_occurrences_have_their_senses_and_each_sentence_counts_once():
    from elmokit.probes.sense_examples import occurrences_in_senses

    found = occurrences_in_senses(SENTENCES, "play")
    assert [one.sense for one in found] == [
        DRAMA, DRAMA, DRAMA, SHOW, VERB, ACT, f"{ACT} {DRAMA}",
    ]  # fmt: skip
    assert {one.word for one in found} == {"play", "plays"}
    nouns = occurrences_in_senses(SENTENCES, "play", pos="NOUN")
    assert [one.sense for one in nouns] == [one.sense for one in found if one.sense != VERB]


def test_the_queries_are_in_different_senses():
    from elmokit.probes.sense_examples import occurrences_in_senses, queries_of

    first, second = queries_of(occurrences_in_senses(SENTENCES, "play", pos="NOUN"), "play")
    assert (first.sense, second.sense) == (DRAMA, ACT)
    assert (first.tokens[0], second.tokens[0]) == ("a", "his")  # the first is too short to tell
    with pytest.raises(InputError, match="no two senses of 'play'"):
        queries_of(occurrences_in_senses(SENTENCES[:4], "play"), "play")


def test_no_neighbor_is_the_query_or_repeats_it():
    from elmokit.probes.sense_examples import (
        neighbors_of_query,
        occurrences_in_senses,
        queries_of,
    )

    quoted = play("10", f"`` A play {LONG} ''", SHOW)
    occurrences = occurrences_in_senses([*SENTENCES, quoted], "play")
    for query in queries_of(occurrences, "play"):
        found = neighbors_of_query(Embedder(), query, occurrences)
        assert found.occurrence == query
        assert len(found.neighbors) == 3
        assert text_of(query) not in map(text_of, found.neighbors)
        assert all(one.sense for one in found.neighbors)


def text_of(occurrence):
    return [word.casefold() for word in occurrence.tokens if word.isalpha()]


def test_supersenses_are_those_of_wordnet():
    from elmokit.probes.sense_examples import supersense

    assert [supersense(key) for key in (DRAMA, SHOW, ACT, VERB, "odd")] == [
        "1:10", "1:10", "1:04", "2:33", "odd",
    ]  # fmt: skip
