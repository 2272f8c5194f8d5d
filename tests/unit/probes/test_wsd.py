"""Senses by vectors of annotated words: against a slow spelling of the rules, and by hand."""

import math

import numpy as np
import pytest

from elmokit.probes import wsd
from elmokit.probes.wsd import PRIOR_WEIGHTS, disambiguate

from ...builders.probe_sources import TableSource, annotated, inventory

SENSES = {
    "bank_n": ["bank%money", "bank%river", "bank%blood"],
    "bank_v": ["bank%lean"],
    "rock_n": ["rock%stone", "rock%music"],
    "fly_n": ["fly%insect"],
}


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


class Slow:
    """The rules, word by word."""

    def __init__(self, table, corpus, test, senses):
        self.table, self.senses = table, senses
        names = list(dict.fromkeys(sentence.document for sentence in corpus))
        self.corpus = [(len(test) + names.index(s.document), s.tokens, w)
                       for s in corpus for w in s.occurrences]  # fmt: skip
        self.test = [(row, s.tokens, w) for row, s in enumerate(test) for w in s.occurrences]
        self.num_rows = len(test) + len(names)

    def is_right(self, row, tokens, word, method, weight=0.0):
        """Tell whether a word is answered rightly; none without an answer."""
        own = self.table[tokens[word.start]]
        order = self.senses.get(f"{word.lemma}_{word.pos[0].lower()}", [])
        others = [
            (sense, self.table[other_tokens[other.start]])
            for other_row, other_tokens, other in self.corpus
            if other_row != row and (other.lemma, other.pos) == (word.lemma, word.pos)
            for sense in other.sense_keys
        ]
        if method == "first" or not others:
            return order[0] in word.sense_keys if order else None
        scores = {}
        for sense in sorted({s for s, _ in others}, key=lambda s: ([*order, s].index(s), s)):
            vectors = [vector for other, vector in others if other == sense]
            share = len(vectors) / len(others)
            nearest = max(cosine(own, vector) for vector in vectors)
            scores[sense] = {
                "frequent": share,
                "centroid": cosine(own, np.mean(vectors, axis=0)),
                "nearest": nearest + weight * math.log(share),
            }[method]
        best = max(scores.values())
        answer = next(sense for sense, score in scores.items() if score >= best - 1e-5)
        return answer in word.sense_keys

    def counts(self, method, weight_of_row=lambda row: 0.0):
        """Rows of correct, answered, all."""
        rows = np.zeros((self.num_rows, 3))
        for row, tokens, word in (*self.test, *self.corpus):
            right = self.is_right(row, tokens, word, method, weight_of_row(row))
            rows[row] += bool(right), right is not None, 1
        return rows

    def weight(self, row):
        """Return the weight that is best on the corpus without a document."""
        others = [entry for entry in self.corpus if entry[0] != row]

        def num_right(weight):
            return sum(bool(self.is_right(*entry, "nearest", weight)) for entry in others)

        return max(PRIOR_WEIGHTS, key=num_right)


@pytest.mark.parametrize("seed", range(6))
def test_every_figure_is_that_of_the_rules_word_by_word(monkeypatch, seed):
    monkeypatch.setattr(wsd, "_QUERIES_TOGETHER", 8)
    random = np.random.default_rng(seed)
    table = {f"w{n}": random.normal(size=3) for n in range(9)}

    def text(number, num_documents):
        for n in range(number):
            lemma, pos = [("bank", "NOUN"), ("bank", "VERB"), ("rock", "NOUN"), ("fly", "NOUN"),
                          ("odd", "NOUN")][random.integers(5)]  # fmt: skip
            known = [*SENSES.get(f"{lemma}_{pos[0].lower()}", ()), f"{lemma}%new"]
            keys = random.choice(known, min(len(known), random.integers(1, 3)), replace=False)
            yield annotated(
                f"{num_documents}.{n}", f"w{random.integers(9)}", (0, 1, lemma, pos, *keys),
                document=f"d{random.integers(num_documents)}",
            )  # fmt: skip

    corpus, test = list(text(40, 5)), list(text(9, 1))
    slow = Slow(table, corpus, test, SENSES)
    scores = disambiguate([TableSource(table)], corpus, test, inventory(**SENSES))
    score, num_test = scores[2], len(test)
    weights = {row: slow.weight(row) for row in range(num_test, slow.num_rows)}
    weights |= dict.fromkeys(range(num_test), slow.weight(None))
    expected = [slow.counts("centroid"), slow.counts("nearest"),
                slow.counts("nearest", weights.__getitem__)]  # fmt: skip
    assert score.prior_weight == weights[0]
    baselines = [slow.counts("first")], [slow.counts("frequent")]
    for found, parts in zip(scores, (*baselines, expected), strict=True):
        for number, rows in enumerate(parts):
            of_test, of_corpus = (slice(3 * k, 3 * k + 3) for k in (number, 3 + number))
            assert found.counts[:num_test, of_test].tolist() == rows[:num_test].tolist()
            assert found.counts[num_test:, of_corpus].tolist() == rows[num_test:].tolist()
    assert score.num_unanswered == num_test - expected[0][:num_test, 1].sum()


def test_ties_are_counted_and_rounding_does_not_decide_them():
    words = [f"w{number}" for number in range(6)]
    table = {word: [1.0 + 1e-7 * number, 1.0] for number, word in enumerate(words)}
    corpus = [
        annotated(word, word, (0, 1, "bank", "NOUN", sense), document=word)
        for word, sense in zip(words, ["bank%money", "bank%river"] * 3, strict=True)
    ]
    test = [annotated("q", "w1", (0, 1, "bank", "NOUN", "bank%money"))]
    score = disambiguate([TableSource(table)], corpus, test, inventory(**SENSES))[2]
    assert (score.f1, score.nearest_f1, score.prior_f1) == (100, 100, 100)
    assert score.num_ties["f1"] == score.num_ties["nearest_f1"] == 1
    assert score.num_ties["semcor_nearest_f1"] == 6
