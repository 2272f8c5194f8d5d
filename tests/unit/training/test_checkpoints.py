"""Checkpoints: whole or absent, and equal to what was saved."""

import copy
from pathlib import Path

import pytest
import torch

from elmokit.errors import ConfigError, FormatError
from elmokit.jobs.job import Pieces
from elmokit.training.checkpoints import (
    load_checkpoint,
    restore_optimizer,
    restoring,
    save_checkpoint,
)
from elmokit.training.optimizers import OptimizerConfig


@pytest.fixture
def module():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))


def step(module, optimizer):
    optimizer.zero_grad()
    module(torch.arange(6.0).view(2, 3)).square().mean().backward()
    optimizer.step()


def trained(module, *, name="adamw"):
    """An optimizer with state."""
    optimizer = OptimizerConfig(name=name, weight_decay=0.1).build(module)
    for _ in range(3):
        step(module, optimizer)
    return optimizer


def save(folder, number, module, optimizer, **average):
    save_checkpoint(
        Pieces(folder), number, model=module.state_dict(), optimizer=optimizer,
        carry={"hidden": torch.arange(4.0)}, metadata={"number": number, "best": float("inf")},
        average=average,
    )  # fmt: skip
    return Pieces(folder)


@pytest.mark.parametrize("name", ["adamw", "adagrad", "muon"])
def test_training_goes_on_bit_for_bit(module, tmp_path, name):
    optimizer = trained(module, name=name)
    assert load_checkpoint(Pieces(tmp_path)) is None
    path = save(tmp_path, 3, module, optimizer, weight=torch.ones(2, 3).T)
    step(module, optimizer)

    checkpoint, restored = load_checkpoint(path), copy.deepcopy(module)
    restored.load_state_dict(checkpoint.model)
    again = OptimizerConfig(name=name, weight_decay=0.1).build(restored)
    restore_optimizer(again, checkpoint.optimizer)
    step(restored, again)

    assert checkpoint.carry["hidden"].tolist() == [0, 1, 2, 3]
    assert checkpoint.metadata == {"number": 3, "best": float("inf")}
    assert checkpoint.average["weight"].tolist() == [[1, 1]] * 3
    assert load_checkpoint(save(tmp_path, 4, module, optimizer)).average == {}
    for key, value in module.state_dict().items():
        assert torch.equal(value, restored.state_dict()[key]), key


def test_states_are_saved_in_an_order_that_every_process_has():
    """States have numbers for keys, so the order may not depend on the hashes of names."""
    network = torch.nn.ModuleDict({f"layer{k}": torch.nn.Linear(3, 4) for k in range(12)})
    matrices = OptimizerConfig(name="muon").build(network).param_groups[1]["params"]
    in_order = [parameter for parameter in network.parameters() if parameter.dim() == 2]
    assert [id(parameter) for parameter in matrices] == [id(parameter) for parameter in in_order]


@pytest.mark.parametrize("name", ["adamw", "adagrad", "muon"])
@pytest.mark.parametrize("change", ["fewer", "another shape", "another parameter"])
def test_an_optimizer_of_another_model_is_refused(module, tmp_path, name, change):
    tensors = load_checkpoint(save(tmp_path, 3, module, trained(module, name=name))).optimizer
    key = next(key for key in tensors if key.startswith("1.") and tensors[key].dim())
    tensor = tensors.pop(key)
    if change != "fewer":
        tensors["9.step" if change == "another parameter" else key] = tensor[:1]
    fresh = OptimizerConfig(name=name).build(module)
    with pytest.raises(ValueError, match=r"optimizer\.safetensors"):
        restore_optimizer(fresh, tensors)


def test_a_kill_while_the_same_step_is_replaced_hides_none(module, tmp_path, monkeypatch):
    optimizer = trained(module)
    save(tmp_path, 5, module, optimizer)
    rename, targets = Path.rename, []

    def dies(path, target):
        targets.append(target)
        if len(targets) == 2:
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dies)
        with pytest.raises(KeyboardInterrupt):
            save(tmp_path, 5, module, optimizer)
    assert not (tmp_path / "step-000000005").exists()
    assert load_checkpoint(Pieces(tmp_path)).metadata["number"] == 5
    for number in (9, 12):
        save(tmp_path, number, module, optimizer)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["step-000000009", "step-000000012"]


@pytest.mark.parametrize("name", ["model", "optimizer", "carry", "metadata"])
@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_damage_is_named_with_the_cure(module, tmp_path, name, damage):
    pieces = save(tmp_path, 5, module, trained(module))
    (path,) = pieces.latest.glob(f"{name}.*")
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FormatError, match=r"/step-000000005/\w+.*: .*/step-000000005\b"):
        load_checkpoint(pieces)


@pytest.mark.parametrize("error", [ConfigError("`x`"), KeyError("x"), ValueError("x")])
def test_a_state_that_does_not_fit_the_run_is_named_with_the_cure(module, tmp_path, error):
    checkpoint = load_checkpoint(save(tmp_path, 5, module, trained(module)))
    with pytest.raises(FormatError, match=r"x.* Delete the folder"), restoring(checkpoint):
        raise error
