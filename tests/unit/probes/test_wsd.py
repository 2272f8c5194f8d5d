"""Senses by vectors of annotated words, worked by hand."""

import json
import tempfile

import numpy as np
import pytest

from elmokit.probes import wsd
from elmokit.probes.probe import plain_score
from elmokit.probes.senses import SenseWords
from elmokit.probes.wsd import FIGURES, decide, disambiguate, vector_table

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
EVEN = [bank("t1", "shore", "bank%river"), bank("t2", "cash", "bank%money")]
ODD = [bank("t5", "odd", "bank%river"), bank("t6", "odd", "bank%river")]


def answer(test, training=TRAINING, **senses):
    """F1 of first sense, most frequent sense and vectors, for one word."""
    scores = disambiguate([TableSource(VECTORS)], training, [test], inventory(**SENSES, **senses))
    return [score.f1 for score in scores]


@pytest.mark.parametrize(
    ("test", "training", "expected"),
    [
        # money has the mean (0.9, 0.3), river (0, 1)
        (bank("q", "shore", "bank%river"), TRAINING, [0, 0, 100]),
        (bank("q", "cash", "bank%money"), TRAINING, [100, 100, 100]),
        # as a noun, the verb's centroid (0.9, 0) would be nearest
        (bank("q", "tilt", "bank%money"), TRAINING, [100, 100, 100]),
        # of equally near senses, the inventory's first
        (bank("q", "between", "bank%money"), EVEN, [100, 100, 100]),
        (bank("q", "between", "bank%river"), EVEN, [0, 0, 0]),
        # the most frequent sense is that of the corpus
        (bank("q", "odd", "bank%river"), [*TRAINING, *ODD], [0, 100, 100]),
        # any of several gold senses is right
        (bank("q", "shore", "bank%blood", "bank%river"), TRAINING, [0, 0, 100]),
    ],
)
def test_the_nearest_centroid_wins(test, training, expected):
    assert answer(test, training) == expected


def test_a_lemma_that_nobody_knows_is_not_answered():
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


def test_every_way_of_every_source_is_scored_and_little_is_read():
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
    # the test set does not choose: 1/4 would be right there
    (*_, score) = scores_of([bank("q", "between", "bank%money")], corpus[:5])
    assert (score.prior_f1, score.prior_weight) == (0, 0)


def test_figures_follow_from_the_counts():
    test = [bank("q", "cash", "bank%money"), bank("r", "odd", "bank%river")]
    *baselines, score = scores_of(test)
    for baseline in baselines:  # they have one answer
        assert baseline.nearest_f1 is baseline.prior_f1 is baseline.prior_weight is None
    for figure in FIGURES:
        total = figure.counts(score.counts).sum(axis=0)
        assert float(figure.score(total)) == getattr(score, figure.name)
    assert [len(figure.counts(score.counts)) for figure in FIGURES] == [2, 2, 2, 1, 1, 1]
    plain = json.loads(json.dumps(plain_score(score)))
    assert set(plain["num_ties"]) == {figure.name for figure in FIGURES}
    assert "counts" not in plain


@pytest.fixture
def group():
    random, senses = np.random.default_rng(3), ["s%0", "s%1", "s%2"]
    corpus = [
        annotated(
            f"c{n}", "w", (0, 1, "w", "NOUN", *random.choice(senses, random.integers(1, 3), False)),
            document=f"d{n // 4}",
        )
        for n in range(30)
    ]  # fmt: skip
    test = [annotated(f"q{n}", "w", (0, 1, "w", "NOUN", "s%1")) for n in range(5)]
    (group,) = SenseWords(corpus, test, inventory(w_n=senses)).groups
    return group


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize(
    ("score", "fit"),
    [
        (wsd.centroid_scores, lambda own, others: cosine(own, np.mean(others, axis=0))),
        (wsd.nearest_scores, lambda own, others: max(cosine(own, one) for one in others)),
    ],
)
def test_scores_are_those_of_every_word_by_itself(group, monkeypatch, score, fit):
    monkeypatch.setattr(wsd, "_QUERIES_TOGETHER", 8)
    x = np.random.default_rng(4).normal(size=(2, 35, 7)).astype("f4")
    expected = np.full((2, 35, 3), -np.inf)
    for way, row, sense in np.ndindex(expected.shape):
        others = [
            x[way, n].astype(np.float64)
            for n in range(group.num_corpus)
            if group.is_gold[n, sense] and group.documents[n] != group.documents[row]
        ]
        if others:
            expected[way, row, sense] = fit(x[way, row].astype(np.float64), others)
    np.testing.assert_allclose(score(x, group), expected, atol=1e-6)


def test_a_decision_takes_the_first_of_equal_ones():
    no = -np.inf
    scores = [[0.2, 0.9, 0.1], [0.9, 0.9 + 1e-7, 0.1], [no, no, no], [no, 0.5, 0.5], [0, 1e-3, 0]]
    choice, is_tie = decide(np.array(scores))
    assert choice.tolist() == [1, 0, -1, 1, 1]
    assert is_tie.tolist() == [False, True, False, True, False]
    choice, is_tie = decide(np.zeros((4, 2, 0)))
    assert choice.tolist() == [[-1, -1]] * 4
    assert is_tie.shape == (4, 2)
    assert not is_tie.any()


TABLE = {"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 8]]}


@pytest.fixture
def few_words():
    corpus = [
        annotated("1", "a", (0, 1, "x", "NOUN", "x%1")),
        annotated("2", "b a", (0, 2, "x", "NOUN", "x%2"), (1, 2, "y", "NOUN", "y%1")),
        annotated("3", "b", (0, 1, "y", "NOUN", "y%1")),
    ]
    return SenseWords(corpus, [annotated("1", "b", (0, 1, "x", "NOUN", "x%1"))], inventory())


def test_each_ambiguous_word_has_its_row_in_a_file_that_is_gone_afterwards(
    few_words, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = TableSource(TABLE, ("one", "two"))
    with vector_table(source, few_words) as table:
        assert table.shape == (2, 5, 2)
        assert table[0].tolist() == [[1, 2], [3, 4], [5, 6], [0, 0], [0, 0]]
        assert table[1, 1].tolist() == [5, 6]
        assert source.read == [("a",), ("b", "a"), ("b",)]
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []
    only = SenseWords([annotated("1", "a", (0, 1, "x", "NOUN", "x%1"))], [], inventory())
    with vector_table(TableSource(TABLE, ("one", "two")), only) as table:
        assert table.shape == (2, 1, 0)  # nothing is ambiguous
