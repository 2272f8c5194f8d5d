import pytest
import torch
from torch.autograd import gradcheck

from elmokit.nn.gru import gru_steps


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def test_gru_is_torchs_gru_in_every_direction():
    reference = torch.nn.GRU(5, 3, bidirectional=True).double()
    x = draw(4, 2, 5)
    expected, _ = reference(x)
    inputs = torch.stack([x, x.flip(0)], dim=1)  # (T, D, B, X)
    weights = [
        torch.stack([getattr(reference, f"{name}_l0{end}") for end in ("", "_reverse")])
        for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
    ]
    gates_in = torch.einsum("tdbx,dhx->tdbh", inputs, weights[0]) + weights[1].unsqueeze(1)
    ahead, back = gru_steps(gates_in, *weights[2:]).unbind(dim=1)
    torch.testing.assert_close(torch.cat([ahead, back.flip(0)], dim=2), expected)


def test_gradients_of_the_gru():
    assert gradcheck(gru_steps, (draw(4, 2, 3, 6), draw(2, 6, 2, seed=1), draw(2, 6, seed=2)))


@pytest.mark.parametrize(("steps", "batch"), [(0, 2), (1, 1), (3, 0)])
def test_nothing_to_read(steps, batch):
    weight, bias = draw(2, 6, 2), draw(2, 6)
    states = gru_steps(draw(steps, 2, batch, 6), weight, bias)
    assert states.shape == (steps, 2, batch, 2)
    states.sum().backward()
    assert torch.isfinite(weight.grad).all()


def test_the_gradient_of_one_output_is_enough():
    """Gradients may come spread out, as those of a sum do, and of some steps alone."""
    gates_in, weight, bias = draw(4, 2, 3, 6), draw(2, 6, 2, seed=1), draw(2, 6, seed=2)
    gru_steps(gates_in, weight, bias)[1].sum().backward()
    assert gates_in.grad[:2].abs().sum() > 0
    assert gates_in.grad[2:].abs().sum() == 0
