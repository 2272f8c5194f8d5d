"""Tag sequences: what may follow what, the search and probabilities, by enumeration."""

from itertools import combinations, pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest

from elmokit.metrics.task_scores import read_spans, write_tags
from elmokit.tasks import tag_search

NUM_TAGS = 3
ALL = np.ones((NUM_TAGS + 2, NUM_TAGS + 2), dtype=bool)
SOME = ALL.copy()
"""Tag 0 goes everywhere; 2 follows 1 or 2 only; 2 may not begin, 1 may not end."""
SOME[0, 2] = SOME[NUM_TAGS, 2] = SOME[1, NUM_TAGS + 1] = False


def random(*shape, seed=0):
    return 2 * np.random.default_rng(seed).standard_normal(shape)


def score_of(transitions, logits, sequence):
    score = sum(logits[t, tag] for t, tag in enumerate(sequence))
    return score + sum(transitions[a, b] for a, b in pairwise(sequence))


def all_sequences(length, allowed):
    start, end = len(allowed) - 2, len(allowed) - 1
    return [
        sequence
        for sequence in product(range(start), repeat=length)
        if not length or all(allowed[pair] for pair in pairwise([start, *sequence, end]))
    ]


@pytest.mark.parametrize("allowed", [ALL, SOME])
@pytest.mark.parametrize("length", [0, 1, 3, 4])
def test_the_search_finds_what_enumeration_finds(allowed, length):
    logits, transitions = random(length, NUM_TAGS), random(NUM_TAGS, NUM_TAGS, seed=1)
    sequences = all_sequences(length, allowed)
    best = max(sequences, key=lambda own: score_of(transitions, logits, own))
    assert tag_search.Lattice(logits, transitions, allowed).best() == list(best)
    even = tag_search.Lattice(np.zeros_like(logits), None, allowed).best()
    assert even == min(map(list, all_sequences(length, allowed)), key=lambda own: own[::-1])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_of_a_diverged_model_are_told(value):
    for score, transitions in ((value, None), (0.0, np.array([[value]]))):
        with pytest.raises(FloatingPointError, match="NaN"):
            tag_search.Lattice(np.array([[score]]), transitions, ALL[:3, :3])


BIOUL = ["O", "B-X", "I-X", "L-X", "U-X", "U-Y"]
BIO = ["O", "B-X", "I-X", "B-Y", "I-Y"]
KINDS = ("X", "C-X")  # types may hold hyphens


@pytest.mark.parametrize(("scheme", "prefixes"), [("iob2", "BI"), ("bioul", "BIUL")])
def test_exactly_the_sequences_that_some_spans_give_are_allowed(scheme, prefixes):
    names = ["O", *(f"{prefix}-{kind}" for kind in KINDS for prefix in prefixes)]
    allowed = tag_search.allowed_transitions(names, scheme)
    legal = {tuple(names[tag] for tag in sequence) for sequence in all_sequences(3, allowed)}
    pieces = [(kind, s, e) for s, e in combinations(range(4), 2) for kind in KINDS]
    expected = {
        tuple(write_tags(spans, 3, scheme=scheme))
        for size in range(4)
        for spans in product(pieces, repeat=size)
        if all(a[2] <= b[1] for a, b in pairwise(spans))
    }
    assert legal == expected


@pytest.mark.parametrize(("tags", "scheme"), [(BIOUL, "bioul"), (BIO, "iob2")])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_probabilities_are_sums_over_all_legal_sequences(tags, scheme, length):
    logits, allowed = (
        random(length, len(tags), seed=length),
        tag_search.allowed_transitions(tags, scheme),
    )
    transitions = random(len(tags), len(tags), seed=9) if scheme == "bioul" else None
    given = np.zeros((len(tags), len(tags))) if transitions is None else transitions
    sequences = all_sequences(length, allowed)
    weights = np.exp([score_of(given, logits, sequence) for sequence in sequences])
    every = dict(zip(sequences, (weights / weights.sum()).tolist(), strict=True))
    lattice = tag_search.Lattice(logits, transitions, allowed)
    for t, tag in product(range(length), range(len(tags))):
        expected = sum(p for sequence, p in every.items() if sequence[t] == tag)
        assert lattice.of_part(t, [tag]) == pytest.approx(expected, abs=1e-12)
    ids = {tag: number for number, tag in enumerate(tags)}
    names_of = {sequence: [tags[tag] for tag in sequence] for sequence in every}
    spans_of = {sequence: read_spans(names) for sequence, names in names_of.items()}
    for sequence, prob in every.items():
        assert not length or lattice.of_part(0, sequence) == pytest.approx(prob, rel=1e-9)
        probs = tag_search.span_probs(lattice, names_of[sequence], ids)
        for span, own in zip(spans_of[sequence], probs, strict=True):
            expected = sum(p for other, p in every.items() if span in spans_of[other])
            assert own == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        # the majority's type, also where it was missed; not in lower case
        ("Rome fell | U-LOC O / in Rome | O U-LOC / Rome | U-PER / old Rome rome | O O O",
         "U-LOC O / O U-LOC / U-LOC / O U-LOC O"),
        # of equal counts the first; found once: nothing to agree with
        ("Rome | U-PER / Rome | U-LOC / Oslo | U-LOC / Oslo | O", "U-PER / U-PER / U-LOC / O"),
        # the longest name wins, and what is part of another span stays
        ("New York | B-LOC L-LOC / New York | B-LOC L-LOC / York | U-PER / York | U-PER / "
         "New York York | O O O / New York Times | B-ORG I-ORG L-ORG",
         "B-LOC L-LOC / B-LOC L-LOC / U-PER / U-PER / B-LOC L-LOC U-PER / B-ORG I-ORG L-ORG"),
        # an empty text ends a document
        ("Rome | U-LOC / Rome | U-LOC / | / Rome | U-PER", "U-LOC / U-LOC /  / U-PER"),
    ],
)  # fmt: skip
def test_names_agree_within_a_document_and_new_spans_have_no_probability(document, expected):
    read = [[part.split() for part in sentence.split("|")] for sentence in document.split("/")]
    examples = [SimpleNamespace(tokens=tuple(words)) for words, _ in read]
    old = [(tags, lambda tags=tags: [0.5] * len(read_spans(tags))) for _, tags in read]
    agreed = tag_search.agreeing(zip(examples, old, strict=True))
    for (_, (new, probs)), (tags, _), wanted in zip(agreed, old, expected.split("/"), strict=True):
        assert new == wanted.split()
        assert probs() == [0.5 if span in read_spans(tags) else None for span in read_spans(new)]
