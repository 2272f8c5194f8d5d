"""The sentence encoder: against torch's own layers on each sentence; its dropout and weights."""

import pytest
import torch

from elmokit.tasks.networks.encoder import (
    SentenceEncoder,
    SentenceEncoderConfig,
    VariationalDropout,
    _run_packed,
)

from ....builders.task_models import LENGTHS, MASK, padded_inputs

CELLS = pytest.mark.parametrize("cell", ["lstm", "gru"])


def build(cell="lstm", hidden_dims=(3, 2), **settings):
    config = SentenceEncoderConfig(hidden_dims=hidden_dims, cell=cell, **settings)
    return SentenceEncoder(4, config).double().eval()


@CELLS
def test_equals_torchs_own_layers_on_each_sentence(cell):
    encoder, x = build(cell), padded_inputs()
    found = encoder(x, MASK)
    assert found.shape == (4, 5, encoder.output_dim)
    for row, length in enumerate(LENGTHS):
        if length:
            expected = x[row : row + 1, :length]
            for layer in encoder.layers:
                expected = layer(expected)[0]
            torch.testing.assert_close(found[row, :length], expected[0])
        assert (found[row, length:] == 0).all()


@CELLS
def test_a_row_alone_is_as_in_a_padded_batch(cell):
    encoder, x = build(cell).float(), padded_inputs().float()
    together = encoder(x, MASK)
    for row, length in enumerate(LENGTHS):
        alone = encoder(x[row : row + 1, :length], MASK[row : row + 1, :length])
        torch.testing.assert_close(alone[0], together[row, :length], atol=1e-6, rtol=0)


@CELLS
def test_single_precision_has_the_same_numbers_and_gradients(cell):
    """In fp32 torch may compute whole layers by other kernels than in float64."""
    found = {}
    for dtype in (torch.float32, torch.float64):
        encoder = build(cell).to(dtype).train()
        out = encoder(padded_inputs().to(dtype), MASK)
        out.square().sum().backward()
        gradients = {name: p.grad.double() for name, p in encoder.named_parameters()}
        found[dtype] = {"out": out.detach().double(), **gradients}
    torch.testing.assert_close(found[torch.float32], found[torch.float64], atol=1e-6, rtol=1e-4)


@CELLS
def test_packed_sequences_as_a_gpu_reads_them_give_the_same_numbers(cell):
    found = []
    for packed in (True, False):
        encoder = build(cell, hidden_dims=(3,))
        x = padded_inputs().nan_to_num(nan=7.0).requires_grad_()
        if packed:
            out = _run_packed(encoder.layers[0], x, torch.tensor(LENGTHS).clamp(min=1))
            out = out.masked_fill(~MASK.unsqueeze(2), 0)
        else:
            out = encoder(x, MASK)
        out.square().sum().backward()
        found.append([out.detach(), x.grad, *(p.grad for p in encoder.parameters())])
    torch.testing.assert_close(*found)


@pytest.mark.gpu
@CELLS
def test_a_gpu_gives_the_same_numbers_and_gradients(cell):
    found = {}
    for device in ("cpu", "cuda"):
        encoder = build(cell).to(device).train()
        out = encoder(padded_inputs().to(device), MASK.to(device))
        out.square().sum().backward()
        gradients = {name: p.grad.cpu() for name, p in encoder.named_parameters()}
        found[device] = {"out": out.detach().cpu(), **gradients}
    torch.testing.assert_close(found["cuda"], found["cpu"])


@CELLS
def test_reading_without_gradients_gives_the_same_numbers(cell):
    encoder, x = build(cell), padded_inputs()
    with torch.no_grad():
        found = encoder(x, MASK)
    torch.testing.assert_close(found, encoder(x, MASK).detach())


@CELLS
def test_mixed_precision_trains(cell):
    encoder, x = build(cell).float().train(), padded_inputs().float()
    with torch.autocast("cpu", torch.bfloat16):
        found = encoder(x.bfloat16(), MASK)
    assert found.dtype == torch.float32  # torch's bf16 LSTM is not on every processor
    found.square().sum().backward()
    torch.testing.assert_close(found, encoder(x, MASK), atol=0.05, rtol=0)
    assert all(p.grad.isfinite().all() for p in encoder.parameters())


def test_no_rows_no_positions_and_only_empty_rows():
    encoder = build()
    for shape in ((0, 3), (2, 0)):
        out = encoder(torch.zeros(*shape, 4).double(), torch.zeros(shape, dtype=torch.bool))
        assert out.shape == (*shape, 4)
    out = encoder(torch.ones(2, 3, 4).double(), torch.zeros(2, 3, dtype=torch.bool))
    assert (out == 0).all()


def test_padding_before_real_positions_is_refused():
    with pytest.raises(ValueError, match="sentence 0"):
        build()(torch.zeros(1, 2, 4).double(), torch.tensor([[False, True]]))


@CELLS
def test_gradients_reach_real_positions_and_weights_only(cell):
    encoder = build(cell)
    x = padded_inputs().nan_to_num(nan=7.0).requires_grad_()
    encoder(x, MASK).square().sum().backward()
    assert (x.grad[~MASK] == 0).all()
    assert x.grad[MASK].abs().amin() > 0
    assert all(p.grad.isfinite().all() for p in encoder.parameters())


class TestFreshWeights:
    @CELLS
    def test_recurrent_blocks_are_orthogonal(self, cell):
        for layer, width in zip(build(cell).layers, (3, 2), strict=True):
            for name, weight in layer.named_parameters():
                if name.startswith("weight_hh"):
                    for block in weight.split(width):
                        identity = torch.eye(width, dtype=torch.float64)
                        torch.testing.assert_close(block @ block.T, identity, atol=1e-6, rtol=0)

    def test_input_blocks_are_glorot_uniform(self):
        """Blocks of 50 x 100: bound sqrt(6 / 150) = 0.2."""
        config = SentenceEncoderConfig(hidden_dims=(50,))
        weight = SentenceEncoder(100, config).layers[0].weight_ih_l0
        assert weight.abs().max().item() == pytest.approx(0.2, rel=0.01)
        assert weight.std().item() == pytest.approx(0.2 / 3**0.5, rel=0.03)

    def test_biases_are_zero_but_for_the_forget_gates(self):
        """Torch adds two biases; together each LSTM forget gate (the second block) has 1."""
        for layer in build("lstm", hidden_dims=(3,)).layers:
            for end in ("l0", "l0_reverse"):
                bias = getattr(layer, f"bias_ih_{end}") + getattr(layer, f"bias_hh_{end}")
                assert bias.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0]
        for layer in build("gru").layers:
            assert all((p == 0).all() for name, p in layer.named_parameters() if "bias" in name)

    def test_depend_on_the_generator_alone(self):
        torch.manual_seed(99)
        one, other, fresh = build(), build(), build()
        fresh.reset_parameters(torch.Generator().manual_seed(5))
        assert all(map(torch.equal, one.state_dict().values(), other.state_dict().values()))
        assert not torch.equal(one.layers[0].weight_hh_l0, fresh.layers[0].weight_hh_l0)

    def test_the_directions_differ(self):
        layer = build().layers[0]
        assert not torch.equal(layer.weight_hh_l0, layer.weight_hh_l0_reverse)


class TestVariationalDropout:
    def test_drops_the_same_features_at_all_positions(self):
        torch.manual_seed(0)
        dropped = VariationalDropout(0.25)(torch.ones(8, 6, 1000))
        assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
        assert sorted(set(dropped.flatten().tolist())) == [0, pytest.approx(4 / 3)]
        assert (dropped == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)

    def test_rows_drop_different_features(self):
        torch.manual_seed(0)
        dropped = VariationalDropout(0.5)(torch.ones(2, 1, 100))
        assert not torch.equal(dropped[0], dropped[1])

    def test_does_nothing_outside_training_or_at_zero(self):
        x = torch.randn(2, 3, 4)
        assert torch.equal(VariationalDropout(0.9).eval()(x), x)
        assert torch.equal(VariationalDropout(0.0)(x), x)

    def test_acts_at_the_input_of_every_layer(self):
        """Layers that copy what they get show the two masks: see how often a feature survives."""

        encoder = SentenceEncoder(400, SentenceEncoderConfig(hidden_dims=(200, 200), dropout=0.5))
        encoder._read = lambda layer, x, lengths: x
        torch.manual_seed(0)
        out = encoder(torch.ones(1, 3, 400), torch.ones(1, 3, dtype=torch.bool))
        assert torch.equal(out, out[:, :1].expand_as(out))
        assert (out == 4).float().mean().item() == pytest.approx(0.25, abs=0.08)

    @pytest.mark.parametrize("share", [-0.1, 1.0])
    def test_impossible_shares(self, share):
        with pytest.raises(ValueError, match=rf"`share` .* 0 .* 1, .* {share}\."):
            VariationalDropout(share)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden_dims": ()}, r"`hidden_dims` .* 1 .*\(\)$"),
        ({"hidden_dims": (3, 0)}, r"`hidden_dims` .* 1 .*\(3, 0\)$"),
        ({"dropout": 1.0}, r"`dropout` .* 0 .* 1, .* 1\.0$"),
    ],
)
def test_shapes_that_cannot_be_built(settings, message):
    with pytest.raises(ValueError, match=message):
        SentenceEncoderConfig(**settings)
