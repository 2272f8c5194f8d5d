"""Optimizers by name, and the moving average of the weights."""

import copy

import pytest
import torch

from elmokit.training.optimizers import (
    MAX_MUON_DIM,
    OPTIMIZERS,
    UPDATES_TOGETHER,
    OptimizerConfig,
    WeightAverage,
    orthogonalized,
)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_updates_every_trainable_parameter(name):
    module = torch.nn.Linear(3, 2)
    module.register_parameter("frozen", torch.nn.Parameter(torch.ones(2), requires_grad=False))
    optimizer = OptimizerConfig(name=name).build(module)
    before = {key: value.clone() for key, value in module.state_dict().items()}
    module(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    changed = {key for key, value in module.state_dict().items() if (value != before[key]).any()}
    assert changed == {"weight", "bias"}


@pytest.mark.parametrize("shape", [(40, 8), (8, 40), (12, 12)])
def test_orthogonalized_keeps_the_directions_and_evens_their_lengths(shape):
    """Against the singular value decomposition; Newton's iteration leaves 0.7 to 1.2."""
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    in_its_basis = left.mT @ orthogonalized(matrix) @ right.mT
    lengths = in_its_basis.diagonal()
    assert (values / values.max()).min() > 0.01
    assert 0.5 < lengths.min() < lengths.max() < 1.3
    assert (in_its_basis - torch.diag(lengths)).abs().max() < 1e-3


def test_muon_leaves_embeddings_and_output_layer_to_adamw():
    module = torch.nn.ModuleDict({
        "embedding": torch.nn.Embedding(9, 4), "inner": torch.nn.Linear(4, 8),
        "softmax": torch.nn.Linear(8, 9),
    })  # fmt: skip
    twin, before = copy.deepcopy(module), copy.deepcopy(module.state_dict())
    for name, model in (("muon", module), ("adamw", twin)):
        optimizer = OptimizerConfig(name=name).build(model)
        hidden = model["inner"](model["embedding"](torch.arange(9)))
        model["softmax"](hidden.tanh()).square().sum().backward()
        optimizer.step()
    same = {
        name for name, value in module.state_dict().items()
        if torch.equal(value, twin.state_dict()[name])
    }  # fmt: skip
    assert same == {*before} - {"inner.weight"}
    # all singular values of the first update are about the same
    step = torch.linalg.svdvals(module["inner"].weight - before["inner.weight"])
    assert step.max() / step.min() < 2.5


def test_muon_leaves_wide_matrices_to_adamw():
    wide, long = (
        torch.nn.Linear(MAX_MUON_DIM + 1, MAX_MUON_DIM + 1),
        torch.nn.Linear(MAX_MUON_DIM + 1, 4),
    )
    groups = OptimizerConfig(name="muon").build(torch.nn.Sequential(wide, long)).param_groups
    (matrix,) = next(group for group in groups if group.get("is_muon"))["params"]
    assert matrix is long.weight


def test_weight_decay_shrinks_what_muon_orthogonalizes_and_nothing_else():
    ends = []
    for decay in (0.0, 0.1):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 3))
        begin = module[0].weight.detach().clone()
        config = OptimizerConfig(name="muon", learning_rate=0.5, weight_decay=decay)
        module(torch.ones(1, 4)).sum().backward()
        config.build(module).step()
        ends.append(module)
    shrunk = ends[0][0].weight - ends[1][0].weight
    torch.testing.assert_close(shrunk, 0.5 * 0.1 * begin)
    assert torch.equal(ends[0][0].bias, ends[1][0].bias)


def test_the_average_follows_its_formula_across_a_pause():
    module, random = torch.nn.Linear(3, 2, bias=False), torch.Generator().manual_seed(0)
    average, history = WeightAverage(module, 0.9), []
    for step in range(1, 4 * UPDATES_TOGETHER + 1):
        with torch.no_grad():
            module.weight.normal_(generator=random)
        average.update(module, step)
        history.append(module.weight.detach().clone())
        if step == 2 * UPDATES_TOGETHER:
            state = {name: value.clone() for name, value in average.state_dict().items()}
            average = WeightAverage(torch.nn.Linear(3, 2, bias=False), 0.9)
            average.load_state_dict(state)
    expected = history[0]
    for updates in range(UPDATES_TOGETHER, 4 * UPDATES_TOGETHER + 1, UPDATES_TOGETHER):
        kept = min(0.9, (1 + updates) / (10 + updates)) ** UPDATES_TOGETHER
        expected = kept * expected + (1 - kept) * history[updates - 1]
    torch.testing.assert_close(average.model.weight, expected)
