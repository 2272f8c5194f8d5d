"""The alternating highway LSTM, against a slow version written from the equations."""

import pytest
import torch

from elmokit.tasks.networks.highway_lstm import (
    AlternatingHighwayLSTM,
    HighwayLSTMConfig,
    HighwayLSTMLayer,
)

from ....builders.task_models import LENGTHS, MASK, padded_inputs


def build(num_layers=4, hidden_dim=3, dropout=0.0, input_dim=4):
    config = HighwayLSTMConfig(num_layers=num_layers, hidden_dim=hidden_dim, dropout=dropout)
    encoder = AlternatingHighwayLSTM(input_dim, config).double()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for layer in encoder.layers:
            layer.bias.add_(torch.randn(layer.bias.shape, generator=generator))
    return encoder


def slow_layer(layer, words, kept=None):
    """Read a list of vectors, gate by gate, word by word."""
    size = layer.hidden_dim
    w = layer.input_weight.split(size)
    u = layer.recurrent_weight.split(size)
    b = layer.bias.split(size)
    h, c, outputs = torch.zeros(size).double(), torch.zeros(size).double(), []
    for x in words:
        i, f, o, r, g = (w[k] @ x + u[k] @ h + b[k] for k in range(5))
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = r.sigmoid() * o.sigmoid() * c.tanh() + (1 - r.sigmoid()) * (layer.carry_weight @ x)
        h = h if kept is None else h * kept
        outputs.append(h)
    return outputs


def slow(encoder, words):
    for index, layer in enumerate(encoder.layers):
        words = slow_layer(layer, words) if index % 2 == 0 else slow_layer(layer, words[::-1])[::-1]
    return words


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
def test_equals_the_equations_sentence_by_sentence(num_layers):
    encoder, x = build(num_layers).eval(), padded_inputs()
    found = encoder(x, MASK)
    for row, length in enumerate(LENGTHS):
        expected = slow(encoder, list(x[row, :length]))
        for t in range(length):
            torch.testing.assert_close(found[row, t], expected[t])
        assert (found[row, length:] == 0).all()


@pytest.mark.parametrize("num_layers", [1, 2])
def test_directions_alternate_beginning_left_to_right(num_layers):
    """With one layer word 0 cannot know word 4; with two it does, and the first knows the last."""
    encoder = build(num_layers).eval()
    x = padded_inputs()[:1].requires_grad_()
    encoder(x, MASK[:1])[0, 0].sum().backward()
    assert (x.grad[0, 4].abs().max() > 0) == (num_layers == 2)


def test_a_row_alone_is_as_in_a_padded_batch():
    encoder, x = build().float().eval(), padded_inputs().float()
    together = encoder(x, MASK)
    for row, length in enumerate(LENGTHS):
        alone = encoder(x[row : row + 1, :length], MASK[row : row + 1, :length])
        torch.testing.assert_close(alone[0], together[row, :length], atol=1e-6, rtol=0)


def test_gradients():
    encoder = build(num_layers=3, hidden_dim=2)
    x = padded_inputs()[:, :3].nan_to_num(nan=7.0).requires_grad_()

    def run(x, *_):
        return encoder(x, MASK[:, :3])

    assert torch.autograd.gradcheck(run, (x, *encoder.parameters()))


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_no_rows_and_no_positions(shape):
    out = build()(torch.zeros(*shape, 4).double(), torch.zeros(shape, dtype=torch.bool))
    assert out.shape == (*shape, 3)


def test_padding_before_real_positions_is_refused():
    with pytest.raises(ValueError, match="sentence 0"):
        build()(torch.zeros(1, 2, 4).double(), torch.tensor([[False, True]]))


class TestDropout:
    def test_the_mask_acts_on_the_output_that_goes_on_too(self):
        layer = build(1).layers[0]
        kept = torch.tensor([[2.0, 0.0, 0.5]]).double()
        found = layer(padded_inputs()[:1], kept)
        for t, expected in enumerate(slow_layer(layer, list(padded_inputs()[0]), kept[0])):
            torch.testing.assert_close(found[0, t], expected)

    def test_drops_the_same_features_at_all_positions_of_a_row(self):
        encoder = build(1, hidden_dim=200, dropout=0.25).train()
        torch.manual_seed(0)
        x = torch.randn(3, 5, 4).double()
        dropped = encoder(x, torch.ones(3, 5, dtype=torch.bool)) == 0
        assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
        assert dropped.float().mean().item() == pytest.approx(0.25, abs=0.06)
        assert not torch.equal(dropped[0], dropped[1])

    def test_layers_draw_their_own_masks(self):
        encoder = build(2, hidden_dim=50, dropout=0.5).train()
        seen = []
        for layer in encoder.layers:
            layer.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[1]))
        encoder(padded_inputs(), MASK)
        assert not torch.equal(seen[0], seen[1])
        assert set(torch.cat(seen).flatten().tolist()) == {0, 2}

    def test_none_outside_training(self):
        encoder = build(dropout=0.5).eval()
        assert torch.equal(encoder(padded_inputs(), MASK), encoder(padded_inputs(), MASK))


class TestFreshWeights:
    def test_blocks_are_orthonormal(self):
        layer = HighwayLSTMLayer(7, 5)
        for weight in (layer.input_weight, layer.recurrent_weight, layer.carry_weight):
            for block in weight.split(5):
                torch.testing.assert_close(block @ block.T, torch.eye(5), atol=1e-5, rtol=0)

    def test_only_the_forget_gate_has_a_bias(self):
        assert HighwayLSTMLayer(3, 2).bias.tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 0, 0]

    def test_layers_differ_and_depend_on_the_generator_alone(self):
        torch.manual_seed(99)
        one, other = (AlternatingHighwayLSTM(3, HighwayLSTMConfig(hidden_dim=3)) for _ in range(2))
        assert all(map(torch.equal, one.state_dict().values(), other.state_dict().values()))
        assert not torch.equal(one.layers[0].recurrent_weight, one.layers[1].recurrent_weight)
        other.reset_parameters(torch.Generator().manual_seed(5))
        assert not torch.equal(one.layers[0].recurrent_weight, other.layers[0].recurrent_weight)


@pytest.mark.parametrize(
    ("name", "value"), [("num_layers", 0), ("hidden_dim", 0), ("dropout", 1.0)]
)
def test_shapes_that_cannot_be_built(name, value):
    with pytest.raises(ValueError, match=rf"`{name}` .* {value}$"):
        HighwayLSTMConfig(**{name: value})
