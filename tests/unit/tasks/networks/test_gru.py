import pytest
import torch
from torch.autograd import gradcheck

from elmokit.tasks.networks.gru import gru_steps


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


WEIGHTS = draw(4 * 2 * 3 * 2, seed=3).detach()


def slow_gru(gates_in, weight, bias):
    hidden = torch.zeros_like(gates_in[0, ..., :2])
    states = []
    for gate_in in gates_in:
        r_in, z_in, n_in = gate_in.chunk(3, dim=-1)
        inner = hidden @ weight.transpose(1, 2) + bias.unsqueeze(1)
        r_inner, z_inner, n_inner = inner.chunk(3, dim=-1)
        z = torch.sigmoid(z_in + z_inner)
        new = torch.tanh(n_in + torch.sigmoid(r_in + r_inner) * n_inner)
        hidden = (1 - z) * new + z * hidden
        states.append(hidden)
    return torch.stack(states)


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


@pytest.mark.parametrize(("steps", "batch"), [(0, 2), (3, 0)])
def test_nothing_to_read(steps, batch):
    weight, bias = draw(2, 6, 2), draw(2, 6)
    states = gru_steps(draw(steps, 2, batch, 6), weight, bias)
    assert states.shape == (steps, 2, batch, 2)
    states.sum().backward()
    assert torch.isfinite(weight.grad).all()


@pytest.mark.parametrize("of", [torch.sum, lambda y: y.transpose(0, 2).flatten() @ WEIGHTS])
def test_gradients_that_are_spread_out_or_in_another_order(of):
    """Such as come from a sum or a transposed use, against torch's own derivatives of each step."""
    inputs = draw(4, 2, 3, 6), draw(2, 6, 2, seed=1), draw(2, 6, seed=2)
    given = torch.autograd.grad(of(gru_steps(*inputs)), inputs)
    expected = torch.autograd.grad(of(slow_gru(*inputs)), inputs)
    torch.testing.assert_close(given, expected)
