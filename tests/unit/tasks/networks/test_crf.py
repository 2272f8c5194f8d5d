"""Tag sequences: what may follow what, the CRF, the search and probabilities, by enumeration."""

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.metrics.span_f1 import read_spans
from elmokit.tasks.networks.crf import CRF, Marginals, allowed_transitions, span_probs, viterbi

LENGTHS = [4, 1, 0, 3]
NUM_TAGS = 3
ALL = torch.ones(NUM_TAGS + 2, NUM_TAGS + 2, dtype=torch.bool)
SOME = ALL.clone()
"""Tag 0 goes everywhere; 2 follows 1 or 2 only; 2 may not begin, 1 may not end."""
SOME[0, 2] = SOME[NUM_TAGS, 2] = SOME[1, NUM_TAGS + 1] = False
TAGS = torch.tensor([[0, 1, 2, 0], [0, 9, 9, 9], [-5, 9, 9, 9], [1, 2, 2, -7]])


def mask_of(lengths):
    longest = max(lengths, default=0)
    return torch.arange(longest).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)


def random(*shape, seed=0, scale=2.0):
    values = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return values * scale


def build(allowed=ALL, *, seed=0):
    crf = CRF(allowed)
    crf.reset_parameters(torch.Generator().manual_seed(seed))
    with torch.no_grad():
        crf.transitions.mul_(10)
    return crf.double()


def decode(crf, logits, mask):
    return viterbi(logits, mask, transitions=crf.transitions, allowed=crf.allowed)


def keeps(sequence, allowed):
    num_tags = allowed.shape[0] - 2
    path = [num_tags, *sequence, num_tags + 1]
    return not sequence or all(bool(allowed[a, b]) for a, b in pairwise(path))


def score_of(crf, logits, sequence):
    score = torch.zeros((), dtype=torch.float64)
    score = score + sum(logits[t, tag] for t, tag in enumerate(sequence))
    return score + sum(crf.transitions[a, b] for a, b in pairwise(sequence))


def all_sequences(length, allowed=ALL):
    sequences = product(range(len(allowed) - 2), repeat=length)
    return [sequence for sequence in sequences if keeps(sequence, allowed)]


@pytest.mark.parametrize("allowed", [ALL, SOME])
def test_log_likelihood_and_decoding_equal_enumeration(allowed):
    crf, logits, mask = build(allowed), random(4, 4, NUM_TAGS), mask_of(LENGTHS)
    logits[~mask] = torch.nan
    log_probs, (tags, best_scores) = crf(logits, TAGS, mask), decode(crf, logits, mask)
    for row, length in enumerate(LENGTHS):
        # training takes any gold; only decoding is constrained
        scores = [score_of(crf, logits[row], s) for s in all_sequences(length)]
        gold = score_of(crf, logits[row], TAGS[row, :length].tolist())
        expected = gold - torch.logsumexp(torch.stack(scores), dim=0)
        assert log_probs[row].item() == pytest.approx(expected.item(), abs=1e-12)
        best = max(
            all_sequences(length, allowed),
            key=lambda sequence: score_of(crf, logits[row], sequence).item(),
        )
        assert tags[row].tolist() == [*best, *[0] * (4 - length)]
        assert best_scores[row].item() == pytest.approx(score_of(crf, logits[row], best).item())


@pytest.mark.parametrize("shape", [(2, 0), (0, 0), (0, 3), (2, 3)])
def test_nothing_to_learn_and_to_decode(shape):
    crf, mask = build(), torch.zeros(shape, dtype=torch.bool)
    logits = torch.zeros(*shape, NUM_TAGS, dtype=torch.float64).requires_grad_()
    log_probs = crf(logits, torch.zeros(shape, dtype=torch.long), mask)
    assert log_probs.tolist() == [0] * shape[0]
    if log_probs.requires_grad:
        log_probs.sum().backward()
        assert not logits.grad.any()
    tags, scores = decode(crf, logits, mask)
    assert tags.shape == shape
    assert not tags.any()
    assert scores.tolist() == [0] * shape[0]


@given(
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([1e-3, 1.0, 1e4, 1e30, 1e300]),
    lengths=st.lists(st.integers(0, 7), min_size=1, max_size=4),
    density=st.sampled_from([0.2, 0.5, 0.9]),
)
def test_the_search_finds_no_illegal_sequence(seed, scale, lengths, density):
    generator = torch.Generator().manual_seed(seed)
    allowed = torch.rand(NUM_TAGS + 2, NUM_TAGS + 2, generator=generator) < density
    allowed[0, 0] = allowed[NUM_TAGS, 0] = allowed[0, NUM_TAGS + 1] = True
    mask = mask_of([*lengths, 7])
    logits = random(len(lengths) + 1, 7, NUM_TAGS, seed=seed, scale=scale)
    tags, scores = viterbi(logits, mask, allowed=allowed)
    assert scores.isfinite().all()
    for row, length in zip(tags.tolist(), [*lengths, 7], strict=True):
        assert keeps(tuple(row[:length]), allowed)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_scores_of_a_diverged_model_are_told(value):
    one, moves = ALL[:3, :3], torch.tensor([[value]])
    with pytest.raises(FloatingPointError, match="NaN"):
        viterbi(torch.tensor([[[value]]]), mask_of([1]), allowed=one)
    with pytest.raises(FloatingPointError, match="NaN"):
        viterbi(torch.zeros(1, 1, 1), mask_of([1]), transitions=moves, allowed=one)


# --- what may follow what -------------------------------------------------------------------------

BIOUL_TAGS = ["O", *(f"{prefix}-{kind}" for kind in ("PER", "LOC") for prefix in "BIUL")]


def pairs(tags, scheme):
    """The allowed pairs, with START and END."""
    allowed = allowed_transitions(tags, scheme)
    assert allowed.shape == (len(tags) + 2, len(tags) + 2)
    names = [*tags, "START", "END"]
    return {(names[i], names[j]) for i, j in allowed.nonzero().tolist()}


def test_bio_written_out_and_types_may_hold_hyphens():
    everything = ("START", "O", "B-X", "I-X", "B-C-X", "I-C-X")
    expected = {(before, b) for before in everything for b in ("O", "B-X", "B-C-X", "END")}
    expected |= {(f"{part}-{kind}", f"I-{kind}") for part in "BI" for kind in ("X", "C-X")}
    assert pairs(["O", "B-X", "I-X", "B-C-X", "I-C-X"], "iob2") == expected


def test_bioul_allows_exactly_the_sequences_that_some_spans_give():
    legal = pairs(BIOUL_TAGS, "bioul")
    allowed = {
        tags
        for tags in product(BIOUL_TAGS, repeat=3)
        if all(pair in legal for pair in pairwise(("START", *tags, "END")))
    }
    pieces = [(s, e, k) for s in range(3) for e in range(s + 1, 4) for k in ("PER", "LOC")]
    possible = set()
    for size in range(4):
        for spans in product(pieces, repeat=size):
            tags = ["O"] * 3
            for start, end, kind in spans:
                inside = [f"I-{kind}"] * (end - start - 2)
                long = [f"B-{kind}", *inside, f"L-{kind}"]
                tags[start:end] = [f"U-{kind}"] if end - start == 1 else long
            if all(a[1] <= b[0] for a, b in pairwise(spans)):
                possible.add(tuple(tags))
    assert allowed == possible


# --- probabilities --------------------------------------------------------------------------------

BIOUL = ["O", "B-X", "I-X", "L-X", "U-X", "U-Y"]
BIO = ["O", "B-X", "I-X", "B-Y", "I-Y"]


@pytest.mark.parametrize(("tags", "scheme"), [(BIOUL, "bioul"), (BIO, "iob2")])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_probabilities_are_sums_over_all_legal_sequences(tags, scheme, length):
    logits = random(length, len(tags), seed=length)
    with_transitions = scheme == "bioul"
    transitions = with_transitions * random(len(tags), len(tags), seed=9)
    allowed = allowed_transitions(tags, scheme)
    crf = CRF(allowed)
    crf.transitions.data = transitions
    sequences = all_sequences(length, allowed)
    scores = torch.stack([score_of(crf, logits, sequence) for sequence in sequences])
    every = dict(zip(sequences, scores.softmax(dim=0).tolist(), strict=True))
    given = transitions if with_transitions else None
    marginals = Marginals(logits, transitions=given, allowed=allowed)
    for t, tag in product(range(length), range(len(tags))):
        expected = sum(p for sequence, p in every.items() if sequence[t] == tag)
        assert marginals.of_part(t, [tag]) == pytest.approx(expected, abs=1e-12)
    ids = {tag: number for number, tag in enumerate(tags)}
    spans_of = {sequence: set(read_spans([tags[tag] for tag in sequence])) for sequence in every}
    for sequence, prob in every.items():
        assert not length or marginals.of_part(0, sequence) == pytest.approx(prob, rel=1e-9)
        names = [tags[tag] for tag in sequence]
        for span, own in zip(read_spans(names), span_probs(marginals, names, ids), strict=True):
            expected = sum(p for other, p in every.items() if span in spans_of[other])
            assert own == pytest.approx(expected, abs=1e-12)
