import pytest
import torch

from elmokit.bilm.highway import Highway


@pytest.fixture
def layer():
    highway = Highway(4)
    highway.reset_parameters(torch.Generator().manual_seed(0))
    return highway


def test_the_gate_multiplies_the_transformed_branch(layer):
    x = torch.randn(6, 4)
    gate = 1 / (1 + torch.exp(-(x @ layer.carry.weight.T + layer.carry.bias)))
    transformed = (x @ layer.transform.weight.T + layer.transform.bias).clamp(min=0)
    torch.testing.assert_close(layer(x), gate * transformed + (1 - gate) * x)


@pytest.mark.parametrize(("bias", "expected"), [(-100.0, [3.0, -3.0]), (100.0, [7.0, 0.0])])
def test_a_closed_gate_copies_and_an_open_one_transforms_with_relu(bias, expected):
    highway = Highway(2)
    with torch.no_grad():
        for linear in (highway.carry, highway.transform):
            linear.weight.zero_()
        highway.carry.bias.fill_(bias)
        highway.transform.bias.copy_(torch.tensor([7.0, -7.0]))
    torch.testing.assert_close(highway(torch.tensor([[3.0, -3.0]])), torch.tensor([expected]))


def test_fresh_weights_are_those_of_the_original():
    highway = Highway(400)
    highway.reset_parameters(torch.Generator().manual_seed(0))
    assert (highway.carry.bias == -2).all()
    assert (highway.transform.bias == 0).all()
    for linear in (highway.carry, highway.transform):
        assert linear.weight.std().item() == pytest.approx(1 / 20, rel=0.02)
        assert linear.weight.mean().item() == pytest.approx(0, abs=1e-3)


def test_fresh_weights_depend_on_the_generator_alone(layer):
    before = layer.carry.weight.clone()
    torch.manual_seed(99)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    assert torch.equal(layer.carry.weight, before)


def test_gradients(layer):
    layer = layer.double()
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layer, (x,))
