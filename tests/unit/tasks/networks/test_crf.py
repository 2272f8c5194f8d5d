"""The CRF and the Viterbi search, against the enumeration of all sequences."""

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.tasks.networks.crf import CRF, viterbi

LENGTHS = [4, 1, 0, 3]
NUM_TAGS = 3


def mask_of(lengths):
    longest = max(lengths, default=0)
    return torch.arange(longest).unsqueeze(0) < torch.tensor(lengths).unsqueeze(1)


def random(*shape, seed=0, scale=2.0):
    values = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return values * scale


def some_allowed(num_tags=NUM_TAGS):
    """Tag 0 goes everywhere; 2 follows 1 or 2 only; 2 may not begin, 1 may not end."""
    allowed = torch.ones(num_tags + 2, num_tags + 2, dtype=torch.bool)
    allowed[0, 2] = allowed[num_tags, 2] = allowed[1, num_tags + 1] = False
    return allowed


def build(*, seed=0, **settings):
    crf = CRF(NUM_TAGS, **settings)
    crf.reset_parameters(torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.mul_(10)
    return crf.double()


def keeps(sequence, allowed):
    if not sequence:
        return True
    num_tags = allowed.shape[0] - 2
    path = [num_tags, *sequence, num_tags + 1]
    return all(bool(allowed[a, b]) for a, b in pairwise(path))


def score_of(crf, logits, sequence):
    if not sequence:
        return torch.zeros((), dtype=torch.float64)
    score = sum(logits[t, tag] for t, tag in enumerate(sequence))
    return score + sum(crf.transitions[a, b] for a, b in pairwise(sequence))


def all_sequences(length, allowed=None):
    for sequence in product(range(NUM_TAGS), repeat=length):
        if allowed is None or keeps(sequence, allowed):
            yield sequence


SETTINGS = [{}, {"allowed": some_allowed()}]
TAGS = torch.tensor([[0, 1, 2, 0], [0, 9, 9, 9], [-5, 9, 9, 9], [1, 2, 2, -7]])


@pytest.mark.parametrize("settings", SETTINGS)
def test_log_likelihood_equals_enumeration(settings):
    crf, logits = build(**settings), random(4, 4, NUM_TAGS)
    found = crf(logits, TAGS, mask_of(LENGTHS))
    for row, length in enumerate(LENGTHS):
        scores = [score_of(crf, logits[row], s) for s in all_sequences(length)]
        gold = score_of(crf, logits[row], TAGS[row, :length].tolist())
        expected = gold - torch.logsumexp(torch.stack(scores), dim=0)
        assert found[row].item() == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize("settings", SETTINGS)
def test_probabilities_sum_to_one(settings):
    crf, logits = build(**settings), random(1, 3, NUM_TAGS)
    tags = torch.tensor(list(all_sequences(3)))
    log_probs = crf(logits.expand(len(tags), -1, -1), tags, mask_of([3] * len(tags)))
    assert log_probs.exp().sum().item() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("settings", SETTINGS)
def test_decoding_equals_enumeration(settings):
    crf, logits = build(**settings), random(4, 4, NUM_TAGS, seed=1)
    tags, scores = crf.decode(logits, mask_of(LENGTHS))
    for row, length in enumerate(LENGTHS):
        best = max(
            all_sequences(length, settings.get("allowed")),
            key=lambda sequence: score_of(crf, logits[row], sequence).item(),
        )
        assert tags[row].tolist() == [*best, *[0] * (4 - length)]
        assert scores[row].item() == pytest.approx(score_of(crf, logits[row], best).item())


@pytest.mark.parametrize("settings", SETTINGS)
def test_gradients(settings):
    crf = build(**settings)
    logits = random(4, 4, NUM_TAGS).requires_grad_()
    parameters = list(crf.parameters())

    def likelihood(logits, *_):
        return crf(logits, TAGS, mask_of(LENGTHS))

    assert torch.autograd.gradcheck(likelihood, (logits, *parameters))


def test_hand_worked():
    """Two tags, two words, all scores 0 but the move 0→1, ln 3: four sequences, 1 + 3 + 1 + 1 = 6.

    The sequence 0, 1 has probability 3/6, the others 1/6.
    """
    crf = CRF(2)
    with torch.no_grad():
        crf.transitions[0, 1] = torch.log(torch.tensor(3.0))
    tags = torch.tensor([[0, 1], [0, 0], [1, 0], [1, 1]])
    log_probs = crf(torch.zeros(4, 2, 2), tags, mask_of([2] * 4))
    torch.testing.assert_close(log_probs.exp(), torch.tensor([3.0, 1, 1, 1]) / 6)
    assert crf.decode(torch.zeros(1, 2, 2), mask_of([2]))[0].tolist() == [[0, 1]]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_row_alone_is_as_in_a_padded_batch(settings):
    crf, logits, mask = build(**settings), random(4, 4, NUM_TAGS), mask_of(LENGTHS)
    logits[~mask] = torch.nan
    log_probs, (tags, scores) = crf(logits, TAGS, mask), crf.decode(logits, mask)
    for row, length in enumerate(LENGTHS):
        alone = logits[row : row + 1, :length], mask[row : row + 1, :length]
        torch.testing.assert_close(
            crf(alone[0], TAGS[row : row + 1, :length], alone[1]), log_probs[row : row + 1]
        )
        tags_alone, score_alone = crf.decode(*alone)
        assert tags_alone[0].tolist() == tags[row, :length].tolist()
        torch.testing.assert_close(score_alone, scores[row : row + 1])


@pytest.mark.parametrize("settings", SETTINGS)
def test_five_thousand_steps_stay_finite(settings):
    crf = build(**settings).float()
    logits = (random(1, 5000, NUM_TAGS) * 20).float().requires_grad_()
    mask = mask_of([5000])
    tags, score = crf.decode(logits, mask)
    log_prob = crf(logits, tags, mask)
    log_prob.sum().backward()
    exact = crf.double()(logits.double(), tags, mask)
    assert log_prob.item() <= 1e-6
    torch.testing.assert_close(log_prob.double(), exact, rtol=1e-5, atol=1e-3)
    assert score.isfinite().all()
    assert logits.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in crf.parameters())


def test_empty_rows_give_nothing_to_learn():
    crf = build()
    logits = random(2, 3, NUM_TAGS).requires_grad_()
    mask = mask_of([0, 0]).new_zeros(2, 3)
    log_probs = crf(logits, torch.zeros(2, 3, dtype=torch.long), mask)
    log_probs.sum().backward()
    assert log_probs.tolist() == [0, 0]
    assert (logits.grad == 0).all()
    assert all((p.grad == 0).all() for p in crf.parameters())
    tags, scores = crf.decode(logits, mask)
    assert tags.tolist() == [[0, 0, 0]] * 2
    assert scores.tolist() == [0, 0]


@pytest.mark.parametrize("shape", [(2, 0), (0, 0), (0, 3)])
def test_batches_without_positions(shape):
    crf, mask = CRF(NUM_TAGS), torch.zeros(shape, dtype=torch.bool)
    logits = torch.zeros(*shape, NUM_TAGS)
    assert crf(logits, torch.zeros(shape, dtype=torch.long), mask).tolist() == [0] * shape[0]
    assert crf.decode(logits, mask)[0].shape == shape


def test_half_precision_logits_are_summed_in_single():
    crf, mask = CRF(NUM_TAGS), mask_of([400])
    logits = random(1, 400, NUM_TAGS).bfloat16()
    tags = crf.decode(logits, mask)[0]
    low, high = crf(logits, tags, mask), crf(logits.double(), tags, mask)
    assert low.dtype == torch.float32
    torch.testing.assert_close(low.double(), high, rtol=1e-4, atol=1e-3)


class TestConstraints:
    @given(
        seed=st.integers(0, 10_000),
        scale=st.sampled_from([1e-3, 1.0, 1e4, 1e30, 1e300]),
        lengths=st.lists(st.integers(0, 7), min_size=1, max_size=4),
        density=st.sampled_from([0.2, 0.5, 0.9]),
    )
    def test_never_an_illegal_sequence(self, seed, scale, lengths, density):
        generator = torch.Generator().manual_seed(seed)
        allowed = torch.rand(NUM_TAGS + 2, NUM_TAGS + 2, generator=generator) < density
        allowed[0, 0] = allowed[NUM_TAGS, 0] = allowed[0, NUM_TAGS + 1] = True
        mask = mask_of([*lengths, 7])
        logits = random(len(lengths) + 1, 7, NUM_TAGS, seed=seed, scale=scale)
        tags, scores = viterbi(logits, mask, allowed=allowed)
        assert scores.isfinite().all()
        for row, length in zip(tags.tolist(), [*lengths, 7], strict=True):
            assert keeps(row[:length], allowed)

    def test_without_learned_scores_only_legality_matters(self):
        """Tags O, B, I. The best tag of each word alone is I, I, O; I may not begin.

        B, I, O scores 1 + 3 + 1 = 5; O, O, O scores 0 + 0 + 1; O, B, I 0 + 1 + 0: B, I, O wins.
        """
        allowed = torch.ones(5, 5, dtype=torch.bool)
        allowed[0, 2] = allowed[3, 2] = False
        logits = torch.tensor([[[0.0, 1, 3], [0, 1, 3], [1, 0, 0]]])
        mask = mask_of([3])
        assert viterbi(logits, mask)[0].tolist() == [[2, 2, 0]]
        tags, scores = viterbi(logits, mask, allowed=allowed)
        assert tags.tolist() == [[1, 2, 0]]
        assert scores.tolist() == [5]

    def test_training_takes_any_gold(self):
        crf = build(allowed=some_allowed())
        assert crf(random(1, 2, NUM_TAGS), torch.tensor([[0, 2]]), mask_of([2])).item() < 0

    def test_a_length_without_an_allowed_sequence(self):
        allowed = torch.ones(5, 5, dtype=torch.bool)
        allowed[:3, :3] = False
        assert viterbi(torch.zeros(1, 1, 3), mask_of([1]), allowed=allowed)[0].tolist() == [[0]]
        with pytest.raises(ValueError, match=r"`allowed` .* 2 .*row 1\b"):
            viterbi(torch.zeros(2, 2, 3), mask_of([1, 2]), allowed=allowed)


class TestState:
    def test_the_constraints_are_not_saved(self):
        assert set(CRF(3, allowed=some_allowed()).state_dict()) == {"transitions"}

    def test_fresh_scores_depend_on_the_generator_alone(self):
        torch.manual_seed(99)
        assert torch.equal(build(seed=4).transitions, build(seed=4).transitions)
        assert not torch.equal(build(seed=4).transitions, build(seed=5).transitions)

    def test_learns_what_follows_what(self):
        """Logits say nothing; after training 0, 1, 0, 1 … is what the CRF expects."""
        crf, tags, mask = CRF(2), torch.tensor([[0, 1, 0, 1, 0, 1]]), mask_of([6])
        optimizer = torch.optim.SGD(crf.parameters(), lr=0.5)
        for _ in range(50):
            optimizer.zero_grad()
            (-crf(torch.zeros(1, 6, 2), tags, mask).mean()).backward()
            optimizer.step()
        assert crf.decode(torch.zeros(1, 6, 2), mask)[0].tolist() == tags.tolist()
        assert crf(torch.zeros(1, 6, 2), tags, mask).exp().item() > 0.8


class TestErrors:
    def test_no_tags(self):
        with pytest.raises(ValueError, match=r"`num_tags` .*\b1, .*\b0\b"):
            CRF(0)

    def test_constraints_of_another_size(self):
        with pytest.raises(ValueError, match=r"`allowed` .*\(6, 6\) .* 4 .*\(5, 5\)"):
            CRF(4, allowed=some_allowed(3))
        with pytest.raises(ValueError, match=r"`allowed` .*\(6, 6\) .* 4 .*\(5, 5\)"):
            viterbi(torch.zeros(1, 1, 4), mask_of([1]), allowed=some_allowed(3))

    @pytest.mark.parametrize("tag", [-1, 3])
    def test_tags_that_do_not_exist(self, tag):
        with pytest.raises(
            ValueError, match=rf"`tags` .*\b0 .*\b2 .* {min(0, tag)} .* {max(0, tag)}\."
        ):
            CRF(3)(torch.zeros(1, 2, 3), torch.tensor([[0, tag]]), mask_of([2]))

    def test_logits_of_another_width(self):
        mask = mask_of([2])
        with pytest.raises(ValueError, match=r"`logits` .* 3 .* 4\."):
            CRF(3)(torch.zeros(1, 2, 4), torch.zeros(1, 2, dtype=torch.long), mask)
        with pytest.raises(ValueError, match=r"`logits` .* 3 .* 4\."):
            CRF(3).decode(torch.zeros(1, 2, 4), mask)

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
    def test_scores_that_are_not_finite(self, value):
        with pytest.raises(FloatingPointError, match=r"`logits` .*NaN"):
            viterbi(torch.tensor([[[0.0, value]]]), mask_of([1]))
        with pytest.raises(FloatingPointError, match=r"`transitions` .*NaN"):
            viterbi(torch.zeros(1, 1, 1), mask_of([1]), transitions=torch.tensor([[value]]))

    def test_padding_before_real_positions(self):
        mask = torch.tensor([[False, True]])
        with pytest.raises(ValueError, match="sentence 0"):
            CRF(3).decode(torch.zeros(1, 2, 3), mask)
