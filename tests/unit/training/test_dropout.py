"""Dropout that needs no saved state."""

import pytest
import torch

from elmokit.training.dropout import RowDropout, derived_seed


def build(probability=0.5, *, seed=1, num_rows=6, first_row=0):
    return RowDropout(
        probability, seed=seed, num_rows=num_rows, first_row=first_row, device=torch.device("cpu")
    )


def test_values_are_dropped_at_the_asked_rate_and_the_rest_scaled_up():
    dropped = build(0.2, num_rows=50)(torch.ones(50, 20, 30))
    assert sorted(set(dropped.flatten().tolist())) == pytest.approx([0.0, 1.25])
    assert (dropped == 0).float().mean().item() == pytest.approx(0.2, abs=0.01)


def test_two_processes_drop_what_one_would():
    x = torch.randn(6, 4, 3, generator=torch.Generator().manual_seed(0))
    whole = build()
    first, second = build(first_row=0), build(first_row=3)
    for _ in range(2):
        parts = torch.cat((first(x[:3]), second(x[3:])))
        assert torch.equal(parts, whole(x))


def test_successive_calls_draw_different_masks_and_the_seed_repeats_them():
    x = torch.ones(6, 4, 3)
    dropout, again, other = build(), build(), build(seed=2)
    first, second = dropout(x), dropout(x)
    assert not torch.equal(first, second)
    assert torch.equal(again(x), first)
    assert torch.equal(again(x), second)
    assert not torch.equal(other(x), first)


def test_zero_leaves_the_tensor_alone():
    x = torch.ones(2, 2, 2)
    assert build(0.0)(x) is x


def test_no_gradient_reaches_dropped_values():
    x = torch.ones(6, 4, 3, requires_grad=True)
    dropped = build()(x)
    dropped.sum().backward()
    assert torch.equal(x.grad, dropped.detach())


class TestDerivedSeed:
    def test_is_63_bits_and_differs_for_every_part(self):
        seeds = {
            derived_seed(seed, step, direction, use)
            for seed in range(4)
            for step in range(50)
            for direction in range(2)
            for use in range(2)
        }
        assert len(seeds) == 4 * 50 * 2 * 2
        assert all(0 <= seed < 2**63 for seed in seeds)

    def test_order_counts(self):
        assert derived_seed(1, 2) != derived_seed(2, 1)

    def test_neighboring_seeds_are_far_apart(self):
        """Every bit of the seed is about as often set as not."""
        seeds = [derived_seed(0, step) for step in range(500)]
        shares = [sum(seed >> bit & 1 for seed in seeds) / 500 for bit in range(63)]
        assert all(0.35 < share < 0.65 for share in shares)
