import pytest
import torch
from torch import nn

from elmokit.bilm.lstmp import LSTMP, LSTMConfig

INPUT, CELL, DIM = 5, 8, 4


def build(*, input_dim=INPUT, gain=1.0, **settings):
    settings = {"cell_dim": CELL, "projection_dim": DIM, "cell_clip": None} | settings
    settings = {"projection_clip": None} | settings
    layer = LSTMP(input_dim, LSTMConfig(**settings))
    layer.reset_parameters(torch.Generator().manual_seed(0))
    with torch.no_grad():
        layer.bias.uniform_(-0.5, 0.5, generator=torch.Generator().manual_seed(1))
        for parameter in layer.parameters():
            parameter.mul_(gain)
    return layer


def start(layer, num_rows, *, scale=0.5):
    generator = torch.Generator().manual_seed(3)
    config = layer.config
    return tuple(
        scale * torch.randn(num_rows, size, generator=generator, dtype=layer.bias.dtype)
        for size in (config.projection_dim, config.cell_dim)
    )


def inputs(num_rows, num_steps, *, dim=INPUT, seed=4):
    return torch.randn(num_rows, num_steps, dim, generator=torch.Generator().manual_seed(seed))


def assert_states_close(first, second, *, atol=1e-6):
    for ours, theirs in zip(first, second, strict=True):
        torch.testing.assert_close(ours, theirs, atol=atol, rtol=0)


@pytest.mark.parametrize("projection_dim", [DIM, CELL])
def test_equals_torchs_own_lstm_without_clips(projection_dim):
    layer = build(projection_dim=projection_dim)
    projects = projection_dim != CELL
    oracle = nn.LSTM(
        INPUT, CELL, batch_first=True, proj_size=projection_dim if projects else 0
    ).eval()
    with torch.no_grad():
        oracle.weight_ih_l0.copy_(layer.input_weight)
        oracle.weight_hh_l0.copy_(layer.recurrent_weight)
        oracle.bias_ih_l0.copy_(layer.gate_bias())
        oracle.bias_hh_l0.zero_()
        if projects:
            oracle.weight_hr_l0.copy_(layer.projection_weight)
    hidden, cell = start(layer, 3)
    expected, (last_hidden, last_cell) = oracle(inputs(3, 11), (hidden[None], cell[None]))
    outputs, state = layer(inputs(3, 11), (hidden, cell))
    torch.testing.assert_close(outputs, expected, atol=1e-6, rtol=0)
    assert_states_close(state, (last_hidden[0], last_cell[0]))


def test_both_clips_act_and_the_clipped_cell_is_used():
    layer = build(cell_clip=0.3, projection_clip=0.1, gain=4.0)
    outputs, (hidden, cell) = layer(inputs(4, 9), start(layer, 4))
    assert cell.abs().max().item() == pytest.approx(0.3)
    assert outputs.abs().max().item() == pytest.approx(0.1)
    assert hidden.abs().max() <= 0.1 + 1e-7
    unprojected = build(cell_clip=0.3, projection_dim=CELL, gain=4.0)
    outputs, _ = unprojected(inputs(4, 9), start(unprojected, 4))
    assert outputs.abs().max() <= torch.tanh(torch.tensor(0.3)) + 1e-6


def test_masked_positions_leave_the_state_alone_and_give_zero():
    layer, x = build(cell_clip=0.5), inputs(3, 6)
    mask = torch.tensor([[True] * 6, [True] * 2 + [False] * 4, [False] * 6])
    state = start(layer, 3)
    outputs, (hidden, cell) = layer(x, state, mask)
    short, short_state = layer(x[1:2, :2], tuple(part[1:2] for part in state))
    torch.testing.assert_close(outputs[1:2, :2], short, atol=1e-6, rtol=0)
    assert not outputs[1, 2:].any()
    assert not outputs[2].any()
    assert_states_close((hidden[1:2], cell[1:2]), short_state)
    assert_states_close((hidden[2], cell[2]), (state[0][2], state[1][2]), atol=0)


def test_fresh_weights_are_those_of_the_original():
    layer = LSTMP(32, LSTMConfig(cell_dim=64, projection_dim=32))
    layer.reset_parameters(torch.Generator().manual_seed(0))
    bound = (6 / (64 + 256)) ** 0.5
    for weight in (layer.input_weight, layer.recurrent_weight):
        assert weight.abs().max().item() == pytest.approx(bound, rel=0.01)
    assert layer.projection_weight.abs().max().item() == pytest.approx((6 / 96) ** 0.5, rel=0.01)
    assert not layer.bias.any()


def test_a_clip_is_the_same_setting_as_a_whole_number():
    assert repr(LSTMConfig(cell_clip=3)) == repr(LSTMConfig(cell_clip=3.0))
