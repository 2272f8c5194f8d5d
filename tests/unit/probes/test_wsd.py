"""Senses by the nearest centroid, worked by hand."""

import pytest

from ...builders.probe_sources import TableSource, annotated, inventory

SENSES = {
    "bank_n": ["bank%money", "bank%river", "bank%blood"],
    "bank_v": ["bank%lean"],
    "rock_n": ["rock%stone", "rock%music"],
    "fly_n": ["fly%insect"],
}
VECTORS = {
    "cash": [1, 0], "loan": [0.8, 0.6], "shore": [0, 1], "between": [1, 1], "tilt": [0.9, 0],
    "stones": [1, 0], "songs": [0, 1], "odd": [0, -1], "the": [-9, -9],
}  # fmt: skip


def bank(name, word, *senses, pos="NOUN"):
    return annotated(name, f"the {word}", (1, 2, "bank", pos, *senses))


TRAINING = [
    bank("t1", "cash", "bank%money"),
    bank("t2", "loan", "bank%money"),
    bank("t3", "shore", "bank%river"),
    bank("t4", "tilt", "bank%lean", pos="VERB"),
]


def answer(test, training=TRAINING, **senses):
    """F1 of first sense, most frequent sense and vectors, for one word."""
    from elmokit.probes.wsd import disambiguate

    scores = disambiguate([TableSource(VECTORS)], training, [test], inventory(**SENSES, **senses))
    return [score.f1 for score in scores]


def test_the_nearest_centroid_wins():
    # money has the mean (0.9, 0.3), river (0, 1)
    assert answer(bank("q", "shore", "bank%river")) == [0, 0, 100]
    assert answer(bank("q", "cash", "bank%money")) == [100, 100, 100]


def test_only_senses_of_the_part_of_speech_are_candidates():
    # as a noun, the verb's centroid (0.9, 0) would be nearest
    assert answer(bank("q", "tilt", "bank%money")) == [100, 100, 100]


def test_of_equally_near_senses_the_inventorys_first_is_taken():
    training = [bank("t1", "shore", "bank%river"), bank("t2", "cash", "bank%money")]
    assert answer(bank("q", "between", "bank%money"), training) == [100, 100, 100]
    assert answer(bank("q", "between", "bank%river"), training) == [0, 0, 0]


def test_a_lemma_that_the_corpus_lacks_gets_the_first_sense():
    from elmokit.probes.wsd import disambiguate

    test = [annotated("q", "the odd", (1, 2, "Fly", "NOUN", "fly%insect"))]
    scores = disambiguate([TableSource(VECTORS)], TRAINING, test, inventory(**SENSES))
    assert [score.f1 for score in scores] == [100, 100, 100]
    assert [score.num_backed_off for score in scores] == [1, 1, 1]


def test_a_lemma_that_nobody_knows_is_not_answered():
    from elmokit.probes.wsd import disambiguate

    test = [
        annotated("q", "the odd", (1, 2, "blorp", "NOUN", "blorp%1")),
        bank("r", "cash", "bank%money"),
    ]
    score = disambiguate([TableSource(VECTORS)], TRAINING, test, inventory(**SENSES))[2]
    assert (score.num_unanswered, score.num_instances) == (1, 2)
    assert score.counts.tolist() == [[0, 0, 1], [1, 1, 1]]
    assert score.f1 == pytest.approx(100 * 2 * 1 / (1 + 2))


def test_an_occurrence_of_two_senses_contributes_to_both():
    both = annotated("t", "the songs", (1, 2, "rock", "NOUN", "rock%stone", "rock%music"))
    training = [both, annotated("u", "the stones", (1, 2, "rock", "NOUN", "rock%stone"))]
    # stone: (1, 1) / 2, music: (0, 1)
    heard = annotated("q", "the songs", (1, 2, "rock", "NOUN", "rock%music"))
    seen = annotated("q", "the stones", (1, 2, "rock", "NOUN", "rock%stone"))
    assert answer(heard, training)[2] == 100
    assert answer(seen, training)[2] == 100


def test_the_most_frequent_sense_is_counted_in_the_corpus():
    training = [*TRAINING, bank("t5", "odd", "bank%river"), bank("t6", "odd", "bank%river")]
    assert answer(bank("q", "odd", "bank%river"), training)[:2] == [0, 100]


def test_any_of_several_gold_senses_is_right():
    assert answer(bank("q", "shore", "bank%blood", "bank%river"))[2] == 100


def test_every_way_of_every_source_is_scored_and_little_is_read():
    from elmokit.probes.wsd import disambiguate

    two = TableSource({word: [x, x[::-1]] for word, x in VECTORS.items()}, ("plain", "swapped"))
    other = TableSource(VECTORS, ("other",))
    rock = annotated("u", "the stones", (1, 2, "rock", "NOUN", "rock%stone"))
    test = [bank("q", "shore", "bank%river")]
    scores = disambiguate([two, other], [*TRAINING, rock], test, inventory(**SENSES))
    assert [score.name for score in scores] == [
        "first sense", "most frequent sense", "plain", "swapped", "other",
    ]  # fmt: skip
    assert [score.f1 for score in scores[2:]] == [100, 100, 100]
    assert ("the", "stones") not in two.read
    assert ("the", "tilt") not in two.read
    assert len(two.read) == 4


def test_the_corpus_may_be_a_stream_of_any_length(monkeypatch):
    from elmokit.probes import wsd

    monkeypatch.setattr(wsd, "_SENTENCES_TOGETHER", 2)
    scores = wsd.disambiguate(
        [TableSource(VECTORS)], iter(TRAINING), [bank("q", "shore", "bank%river")],
        inventory(**SENSES),
    )  # fmt: skip
    assert scores[2].f1 == 100
