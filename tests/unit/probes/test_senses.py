"""Annotated words by lemma, and their vectors."""

import numpy as np

from elmokit.probes.senses import SenseWords, lemma_of, occurrence_vectors

from ...builders.probe_sources import TableSource, annotated, inventory


def play(name, *senses, document="d", lemma="play", pos="NOUN"):
    return annotated(name, "a play", (1, 2, lemma, pos, *senses), document=document)


def words_of(corpus, test=()):
    return SenseWords(corpus, test, inventory(play_n=["play%act", "play%drama"]))


def test_groups_are_lemmas_and_parts_of_speech_with_the_test_set_last():
    corpus = [
        play("1", "play%drama", document="b"),
        play("2", "run%1", lemma="run", pos="VERB"),
        play("3", "play%act", "play%odd", document="a"),
        play("4", "play%act", document="b"),
    ]
    words = words_of(corpus, [play("1", "play%drama", lemma="Play")])
    noun, verb = words.groups
    assert (noun.rows, verb.rows) == (slice(0, 4), slice(4, 5))
    assert (noun.num_corpus, noun.documents.tolist()) == (3, [0, 0, 2, -1])
    assert words.corpus_rows == {"1.0": 0, "4.0": 1, "3.0": 2}  # only ambiguous ones
    assert words.test_rows == {"1.0": 3}
    assert words.units.tolist() == [0, 0, 2, 0, 1]
    assert words.is_test.tolist() == [False, False, False, True, False]
    assert (words.num_documents, len(words)) == (3, 5)
    assert [(run.start, run.stop) for run in noun.document_runs()] == [(0, 2), (2, 3), (3, 4)]


def test_candidates_are_in_the_order_of_the_inventory_and_counted_in_other_documents():
    corpus = [
        play("1", "play%drama", document="b"),
        play("3", "play%act", "play%odd", document="a"),
        play("4", "play%act", document="b"),
    ]
    (group,) = words_of(corpus, [play("q", "play%drama")]).groups
    act, drama, odd = group.is_gold.astype(int).T.tolist()
    assert (act, drama, odd) == ([0, 1, 1, 0], [1, 0, 0, 1], [0, 0, 1, 0])
    assert group.frequencies.tolist() == [[1, 0, 1], [1, 0, 1], [1, 1, 0], [2, 1, 1]]


def test_what_is_known_without_vectors():
    words = words_of(
        [play("1", "play%act"), play("2", "play%drama")],
        [play("q", "play%act"), play("r", "blorp%1", lemma="blorp")],
    )
    assert words.has_candidates.tolist() == [False, False, True, False]
    assert words.has_first.tolist() == [True, True, True, False]
    assert words.first_is_gold.tolist() == [True, False, True, False]
    assert not np.any(words.groups[1].is_gold)


def test_expressions_have_the_mean_of_their_words_and_other_sentences_are_not_read():
    sentences = [
        annotated("a", "in New York", (1, 3, "New_York", "NOUN", "ny"), (0, 1, "in", "ADV", "i")),
        annotated("b", "never read", (0, 1, "never", "ADV", "n")),
    ]
    source = TableSource({"in": [[5], [6]], "New": [[1], [2]], "York": [[3], [8]]}, ("x", "y"))
    (word,) = occurrence_vectors(source, sentences, {"a.0"})
    assert (word[0].name, word[1].tolist()) == ("a.0", [[2.0], [5.0]])
    assert source.read == [("in", "New", "York")]
    assert lemma_of(word[0]) == "new york"
