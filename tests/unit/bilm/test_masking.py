import pytest
import torch

from elmokit.bilm.masking import (
    lengths_of,
    masked_max,
    masked_mean,
    masked_softmax,
    reverse_sequences,
)


def test_reversing_keeps_padding_at_the_end():
    x = torch.tensor([[1.0, 2, 3, 9], [1, 9, 9, 9], [9, 9, 9, 9], [1, 2, 3, 4]]).unsqueeze(2)
    reversed_x = reverse_sequences(x, torch.tensor([3, 1, 0, 4])).squeeze(2)
    assert reversed_x.tolist() == [[3, 2, 1, 9], [1, 9, 9, 9], [9, 9, 9, 9], [4, 3, 2, 1]]


@pytest.mark.parametrize("row", [[False, True, True], [True, False, True]])
def test_padding_before_real_positions_is_refused(row):
    with pytest.raises(ValueError, match="sentence 1"):
        lengths_of(torch.tensor([[True, True, True], row]))


class TestMaskedSoftmax:
    def test_a_row_without_real_positions_gets_zeros_and_no_undefined_gradient(self):
        logits = torch.randn(2, 3, requires_grad=True)
        probs = masked_softmax(logits, torch.tensor([[False] * 3, [True] * 3]))
        (probs * torch.arange(3.0)).sum().backward()
        assert probs[0].tolist() == [0, 0, 0]
        assert probs[1].sum().item() == pytest.approx(1)
        assert logits.grad[0].tolist() == [0, 0, 0]
        assert logits.grad[1].abs().min() > 0

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e38])
    def test_what_stands_at_masked_positions_does_not_matter(self, value):
        logits = torch.tensor([[1.0, value, 1.0]])
        probs = masked_softmax(logits, torch.tensor([[True, False, True]]))
        assert probs.tolist() == [[0.5, 0.0, 0.5]]


class TestPooling:
    """Rows of two, no and one real position; padding holds what must not be seen."""

    X = torch.tensor([[[1.0, -4], [3, -8], [99, -99]], [[7, 7], [7, 7], [7, 7]], [[-2, 5]] * 3])
    MASK = torch.tensor([[True, True, False], [False] * 3, [True, False, False]])

    @pytest.mark.parametrize(
        ("pool", "expected"),
        [
            (masked_mean, [[2, -6], [0, 0], [-2, 5]]),
            (masked_max, [[3, -4], [0, 0], [-2, 5]]),
        ],
    )
    def test_hand_worked(self, pool, expected):
        assert pool(self.X, self.MASK).tolist() == expected

    @pytest.mark.parametrize("pool", [masked_mean, masked_max])
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
    def test_padding_does_not_matter(self, pool, value):
        x = self.X.masked_fill(~self.MASK.unsqueeze(2), value)
        assert torch.equal(pool(x, self.MASK), pool(self.X, self.MASK))
