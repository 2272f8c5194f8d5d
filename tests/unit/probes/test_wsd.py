"""Senses by vectors of annotated words, worked by hand."""

import json

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
    "stones": [1, 0], "songs": [0, 1], "odd": [0, -1], "the": [-9, -9], "near": [0.866, 0.5],
}  # fmt: skip


def bank(name, word, *senses, pos="NOUN", document="d"):
    return annotated(name, f"the {word}", (1, 2, "bank", pos, *senses), document=document)


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
    assert score.counts[:2, :3].tolist() == [[0, 0, 1], [1, 1, 1]]
    assert score.f1 == pytest.approx(100 * 2 * 1 / (1 + 2))


def test_a_lemma_that_the_inventory_lacks_is_answered_by_the_corpus_alone():
    corpus = [annotated("t", "the odd", (1, 2, "blorp", "NOUN", "blorp%1"))]
    first, frequent, table = scores_of(
        [annotated("q", "the odd", (1, 2, "blorp", "NOUN", "blorp%1"))], corpus
    )
    assert (first.f1, first.num_unanswered, first.num_backed_off) == (0, 1, 0)
    for score in (frequent, table):
        assert (score.f1, score.num_unanswered, score.num_backed_off) == (100, 0, 0)


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
    assert sorted(two.read) == [
        ("the", "cash"), ("the", "loan"), ("the", "shore"), ("the", "shore"),
    ]  # lemmas with one sense need no vectors  # fmt: skip


def test_the_nearest_word_wins_by_1nn():
    # loan is a word of money, whose centroid (0.9, 0.3) is farther than (1, 1)
    training = [*TRAINING, bank("t5", "between", "bank%blood")]
    (*_, score) = scores_of([bank("q", "loan", "bank%money")], training)
    assert (score.f1, score.nearest_f1) == (0, 100)


def scores_of(test, training=TRAINING):
    from elmokit.probes.wsd import disambiguate

    return disambiguate([TableSource(VECTORS)], training, test, inventory(**SENSES))


def test_a_document_of_the_corpus_never_sees_itself():
    corpus = [
        bank("t1", "cash", "bank%money", document="a"),
        bank("t2", "loan", "bank%money", document="b"),
        bank("t3", "shore", "bank%river", document="c"),
        bank("t4", "between", "bank%river", document="d"),
    ]
    first, frequent, table = scores_of([bank("q", "loan", "bank%money")], corpus)
    assert table.f1 == 100
    # without themselves, loan is nearer to river (1, 2), and between to money (1.8, 0.6)
    assert table.counts[1:, 9:12].tolist() == [[1, 1, 1], [0, 1, 1], [1, 1, 1], [0, 1, 1]]
    assert (table.semcor_f1, table.semcor_num_instances) == (50, 4)
    # the other documents have two of the other sense
    assert (first.semcor_f1, frequent.semcor_f1) == (50, 0)


def test_a_lemma_of_no_other_document_gets_the_first_sense():
    corpus = [
        bank("t1", "cash", "bank%money", document="a"),
        bank("t2", "shore", "bank%river", document="a"),
        annotated("t3", "the odd", (1, 2, "blorp", "NOUN", "blorp%1"), document="a"),
    ]
    (*_, score) = scores_of([bank("q", "cash", "bank%money")], corpus)
    found = score.semcor_num_backed_off, score.semcor_num_unanswered, score.semcor_num_instances
    assert found == (2, 1, 3)
    assert score.counts[1:, 9:12].tolist() == [[1, 2, 3]]
    assert score.semcor_f1 == pytest.approx(100 * 2 / 5)


def test_ties_are_counted_and_rounding_does_not_decide_them():
    from elmokit.probes.wsd import disambiguate

    words = [f"w{number}" for number in range(6)]
    table = {word: [1.0 + 1e-7 * number, 1.0] for number, word in enumerate(words)}
    corpus = [
        bank(word, word, "bank%river" if number % 2 else "bank%money", document=word)
        for number, word in enumerate(words)
    ]
    table["the"] = [0, 0]
    test = [bank("q", "w1", "bank%money")]
    score = disambiguate([TableSource(table)], corpus, test, inventory(**SENSES))[2]
    assert (score.f1, score.nearest_f1, score.prior_f1) == (100, 100, 100)
    assert score.num_ties["f1"] == score.num_ties["nearest_f1"] == 1
    assert score.num_ties["semcor_nearest_f1"] == 6


def test_the_prior_is_weighed_as_is_best_on_the_corpus():
    corpus = [
        bank("r", "loan", "bank%river", document="r"),
        *(bank(f"o{n}", "cash", "bank%money", document=f"o{n}") for n in range(4)),
        bank("m", "between", "bank%money", document="m"),  # right with w of 1/64 or more
        bank("n", "near", "bank%money", document="n"),  # right with 1/32 or more
    ]
    (*_, score) = scores_of([bank("q", "loan", "bank%money")], corpus)
    assert (score.nearest_f1, score.prior_f1, score.prior_weight) == (0, 100, 1 / 32)
    # m gets 1/32, the best without m; n gets only 1/64, the best without n
    assert score.semcor_nearest_f1 == pytest.approx(100 * 4 / 7)
    assert score.semcor_prior_f1 == pytest.approx(100 * 5 / 7)
    assert score.counts[1:, 15].tolist() == [0, 1, 1, 1, 1, 1, 0]


def test_the_test_set_does_not_choose_the_weight():
    corpus = [
        bank("r", "loan", "bank%river", document="r"),
        *(bank(f"o{n}", "cash", "bank%money", document=f"o{n}") for n in range(4)),
    ]
    (*_, score) = scores_of([bank("q", "between", "bank%money")], corpus)
    assert (score.prior_f1, score.prior_weight) == (0, 0)  # 1/4 would be right


def test_baselines_have_one_answer_and_scores_are_json():
    from elmokit.probes.probe import plain_score

    first, frequent, table = scores_of([bank("q", "cash", "bank%money")])
    for score in (first, frequent):
        assert score.nearest_f1 is score.prior_f1 is score.prior_weight is None
    found = json.loads(json.dumps(plain_score(table)))
    assert found["num_ties"] == dict.fromkeys(
        ("f1", "nearest_f1", "prior_f1", "semcor_f1", "semcor_nearest_f1", "semcor_prior_f1"), 0
    )
    assert "counts" not in found


def test_figures_follow_from_the_counts():
    from elmokit.probes.wsd import FIGURES

    (*_, score) = scores_of([bank("q", "cash", "bank%money"), bank("r", "odd", "bank%river")])
    for figure in FIGURES:
        total = figure.counts(score.counts).sum(axis=0)
        assert float(figure.score(total)) == getattr(score, figure.name)
    assert [len(figure.counts(score.counts)) for figure in FIGURES] == [2, 2, 2, 1, 1, 1]
