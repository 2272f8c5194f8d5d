"""Annotated words and their vectors."""

from ...builders.probe_sources import TableSource, annotated


def test_expressions_have_the_mean_of_their_words_and_other_sentences_are_not_read():
    from elmokit.probes.occurrences import occurrence_vectors

    sentences = [
        annotated("a", "in New York", (1, 3, "New_York", "NOUN", "ny"), (0, 1, "in", "ADV", "i")),
        annotated("b", "never read", (0, 1, "never", "ADV", "n")),
    ]
    source = TableSource({"in": [[5], [6]], "New": [[1], [2]], "York": [[3], [8]]}, ("x", "y"))
    found = list(occurrence_vectors(source, sentences, {"a.0"}))
    assert [(word.name, vectors.tolist()) for word, vectors in found] == [("a.0", [[2.0], [5.0]])]
    assert source.read == [("in", "New", "York")]


def test_lemmas_are_compared_without_regard_to_case_and_underscores():
    from elmokit.probes.occurrences import lemma_of

    sentence = annotated("a", "New York", (0, 2, "New_York", "NOUN", "ny"))
    assert lemma_of(sentence.occurrences[0]) == "new york"
