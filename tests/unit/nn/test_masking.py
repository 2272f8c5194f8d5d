import pytest
import torch

from elmokit.nn.masking import lengths_of, reverse_sequences


def test_reversing_keeps_padding_at_the_end():
    x = torch.tensor([[1.0, 2, 3, 9], [1, 9, 9, 9], [9, 9, 9, 9], [1, 2, 3, 4]]).unsqueeze(2)
    reversed_x = reverse_sequences(x, torch.tensor([3, 1, 0, 4])).squeeze(2)
    assert reversed_x.tolist() == [[3, 2, 1, 9], [1, 9, 9, 9], [9, 9, 9, 9], [4, 3, 2, 1]]


def test_reversing_is_its_own_inverse():
    x, lengths = torch.randn(5, 7, 3), torch.tensor([7, 0, 1, 4, 6])
    assert torch.equal(reverse_sequences(reverse_sequences(x, lengths), lengths), x)


def test_gradients_go_back_to_where_the_values_came_from():
    x = torch.zeros(1, 3, 1, requires_grad=True)
    (reverse_sequences(x, torch.tensor([2])) * torch.tensor([[[1.0], [2], [5]]])).sum().backward()
    assert x.grad.flatten().tolist() == [2, 1, 5]


def test_lengths_count_real_positions():
    mask = torch.tensor([[True, True, False], [False, False, False], [True, True, True]])
    assert lengths_of(mask).tolist() == [2, 0, 3]
    assert lengths_of(torch.zeros(2, 0, dtype=torch.bool)).tolist() == [0, 0]


@pytest.mark.parametrize("row", [[False, True, True], [True, False, True]])
def test_padding_before_real_positions_is_refused(row):
    with pytest.raises(ValueError, match="must stand at the end"):
        lengths_of(torch.tensor([[True, True, True], row]))
