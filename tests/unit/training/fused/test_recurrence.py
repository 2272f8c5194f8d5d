"""The recurrences of training, in C and in PyTorch, against the plain layer."""

import pytest
import torch

from elmokit.bilm.lstmp import LSTMP, LSTMConfig
from elmokit.kernels.training import kernels_for
from elmokit.training.fused import lstm as fused_lstm
from elmokit.training.fused.lstm import run_fused

INPUT = 6
CONFIGS = {
    "clips": LSTMConfig(cell_dim=48, projection_dim=18, cell_clip=0.5, projection_clip=0.2),
    "no clips": LSTMConfig(cell_dim=80, projection_dim=70, cell_clip=None, projection_clip=None),
    "no projection": LSTMConfig(cell_dim=32, projection_dim=32, cell_clip=0.5),
}


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS.keys())
def config(request):
    return request.param


def build(config, dtype=torch.float32):
    layer = LSTMP(INPUT, config).to(dtype)
    with torch.no_grad():
        for index, parameter in enumerate(layer.parameters()):
            parameter.normal_(std=0.2, generator=torch.Generator().manual_seed(index))
    return layer


def results(run, config, *, rows=7, steps=5, autocast=False, dtype=torch.float32):
    """Outputs, state, and the gradients of a loss that uses each of them."""
    layer, generator = build(config, dtype), torch.Generator().manual_seed(9)
    x, hidden, cell = (
        (scale * torch.randn(*shape, generator=generator, dtype=dtype)).requires_grad_()
        for scale, shape in (
            (1.0, (rows, steps, INPUT)),
            (0.2, (rows, config.projection_dim)),
            (0.4, (rows, config.cell_dim)),
        )
    )
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        outputs, (last_hidden, last_cell) = run(layer, x, (hidden, cell))
    weights = torch.linspace(-1, 1, outputs.numel(), dtype=dtype).view_as(outputs)
    loss = (outputs * weights).sum() + last_hidden.square().sum() + last_cell.sin().sum()
    gradients = torch.autograd.grad(loss, [x, hidden, cell, *layer.parameters()])
    return [outputs, last_hidden, last_cell, *gradients]


def plain(layer, x, state):
    return layer(x, state)


def relative_errors(ours, expected):
    return [
        float((a - b).detach().abs().max() / b.detach().abs().max())
        for a, b in zip(ours, expected, strict=True)
    ]


def test_in_c_values_and_gradients_equal_the_plain_layer(with_kernels, config, monkeypatch):
    monkeypatch.delattr(fused_lstm, "TorchRecurrence")  # it is not what runs
    ours = results(run_fused, config)
    assert max(relative_errors(ours, results(plain, config))) < 5e-6


def test_in_pytorch_values_and_gradients_equal_the_plain_layer(config, monkeypatch):
    monkeypatch.delattr(fused_lstm, "KernelRecurrence")
    ours = results(run_fused, config, dtype=torch.float64)
    assert max(relative_errors(ours, results(plain, config, dtype=torch.float64))) < 1e-12


def test_gradients_may_come_transposed(with_kernels, config):
    """Their layout is that of the loss, which may read the state the other way round."""

    def gradients(run):
        layer, x = build(config), torch.randn(7, 5, INPUT, generator=torch.Generator())
        state = torch.zeros(7, config.projection_dim), torch.zeros(7, config.cell_dim)
        outputs, (hidden, cell) = run(layer, x, state)
        flat = [part.movedim(0, -1).contiguous().flatten() for part in (outputs, hidden, cell)]
        loss = sum((part * torch.linspace(-1, 1, len(part))).square().sum() for part in flat)
        return torch.autograd.grad(loss, list(layer.parameters()))

    assert max(relative_errors(gradients(run_fused), gradients(plain))) < 5e-6


@pytest.mark.parametrize("name", CONFIGS)
def test_half_width_is_near_and_keeps_its_state_wide(name):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        if kernels_for(torch.zeros(1)) is None:
            pytest.skip("no instructions for bf16 on this machine")
    ours = results(run_fused, CONFIGS[name], autocast=True)
    assert all(tensor.dtype == torch.float32 for tensor in ours)
    errors = relative_errors(ours, results(plain, CONFIGS[name]))
    assert 1e-5 < max(errors) < 0.1  # where a clip holds or not hangs on the last digit


@pytest.mark.parametrize("rows", [3, 60])
def test_no_bit_hangs_on_the_number_of_threads(with_kernels, config, rows, on_threads):
    """Few rows are shared by columns, many by rows."""
    alone, *others = (
        on_threads(count, lambda: results(run_fused, config, rows=rows)[:3]) for count in (1, 2, 5)
    )
    for other in others:
        assert all(torch.equal(a, b) for a, b in zip(alone, other, strict=True))
