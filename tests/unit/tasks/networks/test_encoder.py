"""The sentence encoder and its GRU, against torch's own layers; dropout and fresh weights."""

import pytest
import torch

from elmokit.tasks.networks.encoder import SentenceEncoder, gru_steps, run_packed

from ....builders.task_models import LENGTHS, MASK, padded_inputs

CELLS = pytest.mark.parametrize("cell", ["lstm", "gru"])


def build(cell="lstm", hidden_dims=(3, 2), *, seed=0, input_dim=4, **settings):
    encoder = SentenceEncoder(input_dim, hidden_dims, cell=cell, **settings)
    encoder.reset_parameters(torch.Generator().manual_seed(seed))
    return encoder.double().eval()


@CELLS
@pytest.mark.parametrize("with_gradients", [True, False])
def test_equals_torchs_own_layers_on_each_sentence(cell, with_gradients):
    encoder, x = build(cell), padded_inputs()
    with torch.set_grad_enabled(with_gradients):
        out = encoder(x, MASK)
    assert out.shape == (4, 5, encoder.output_dim)
    for row, length in enumerate(LENGTHS):
        if length:
            expected = x[row : row + 1, :length]
            for layer in encoder.layers:
                expected = layer(expected)[0]
            torch.testing.assert_close(out[row, :length], expected[0])
        assert (out[row, length:] == 0).all()


@CELLS
def test_packed_sequences_as_a_gpu_reads_them_give_the_same_numbers(cell):
    results = []
    for packed in (True, False):
        encoder = build(cell, hidden_dims=(3,))
        x = padded_inputs().nan_to_num(nan=7.0).requires_grad_()
        if packed:
            out = run_packed(encoder.layers[0], x, torch.tensor(LENGTHS).clamp(min=1))
            out = out.masked_fill(~MASK.unsqueeze(2), 0)
        else:
            out = encoder(x, MASK)
        out.square().sum().backward()
        assert (x.grad[~MASK] == 0).all()
        assert x.grad[MASK].abs().amin() > 0
        results.append([out.detach(), x.grad, *(p.grad for p in encoder.parameters())])
    torch.testing.assert_close(*results)


# --- the GRU with its own gradient ----------------------------------------------------------------


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


@pytest.mark.parametrize("of", [torch.sum, lambda y: y.transpose(0, 2).flatten() @ WEIGHTS])
def test_gradients_of_the_gru_are_those_of_its_equations(of):
    """Spread out, as from a sum, or in another order."""
    inputs = draw(4, 2, 3, 6), draw(2, 6, 2, seed=1), draw(2, 6, seed=2)
    torch.testing.assert_close(gru_steps(*inputs), slow_gru(*inputs))
    gradients = torch.autograd.grad(of(gru_steps(*inputs)), inputs)
    torch.testing.assert_close(gradients, torch.autograd.grad(of(slow_gru(*inputs)), inputs))
