"""Probabilities of tags and spans, against the enumeration of all sequences."""

from itertools import pairwise, product

import pytest
import torch

from elmokit.metrics.span_f1 import read_spans
from elmokit.tasks.networks.marginals import Marginals, span_probs
from elmokit.tasks.tag_schemes import allowed_transitions

BIOUL = ["O", "B-X", "I-X", "L-X", "U-X", "U-Y"]
BIO = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def distribution(logits, transitions, allowed):
    """Every allowed sequence and its probability."""
    num_tags = logits.shape[1]
    weights = {}
    for sequence in product(range(num_tags), repeat=len(logits)):
        path = [num_tags, *sequence, num_tags + 1]
        if sequence and not all(allowed[a, b] for a, b in pairwise(path)):
            continue
        score = sum(float(logits[t, tag]) for t, tag in enumerate(sequence))
        score += sum(float(transitions[a, b]) for a, b in pairwise(sequence))
        weights[sequence] = torch.tensor(score, dtype=torch.float64).exp()
    total = sum(weights.values())
    return {sequence: float(weight / total) for sequence, weight in weights.items()}


@pytest.mark.parametrize(("tags", "scheme"), [(BIOUL, "bioul"), (BIO, "iob2")])
@pytest.mark.parametrize("length", [1, 4])
@pytest.mark.parametrize("with_transitions", [False, True])
def test_probabilities_are_sums_over_all_legal_sequences(tags, scheme, length, with_transitions):
    generator = torch.Generator().manual_seed(length)
    logits = 2 * torch.randn(length, len(tags), generator=generator)
    transitions = torch.zeros(len(tags), len(tags))
    if with_transitions:
        transitions = torch.randn(len(tags), len(tags), generator=generator)
    allowed = torch.from_numpy(allowed_transitions(tags, scheme))
    every = distribution(logits, transitions, allowed)
    marginals = Marginals(
        logits, transitions=transitions if with_transitions else None, allowed=allowed
    )
    for t, tag in product(range(length), range(len(tags))):
        expected = sum(p for sequence, p in every.items() if sequence[t] == tag)
        assert marginals.of_part(t, [tag]) == pytest.approx(expected, abs=1e-12)
    ids = {tag: number for number, tag in enumerate(tags)}
    spans_of = {sequence: set(read_spans([tags[tag] for tag in sequence])) for sequence in every}
    for sequence, prob in every.items():
        assert marginals.of_part(0, sequence) == pytest.approx(prob, rel=1e-9)
        names = [tags[tag] for tag in sequence]
        found = span_probs(marginals, names, ids)
        for span, own in zip(read_spans(names), found, strict=True):
            expected = sum(p for other, p in every.items() if span in spans_of[other])
            assert own == pytest.approx(expected, abs=1e-12)


def test_a_sentence_without_words_has_no_spans():
    allowed = torch.from_numpy(allowed_transitions(BIO, "iob2"))
    marginals = Marginals(torch.zeros(0, len(BIO)), allowed=allowed)
    assert span_probs(marginals, [], {}) == []
