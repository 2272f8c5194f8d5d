"""Tensors of files: checked for type and value, stored in smaller formats."""

from typing import get_args

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from elmokit.errors import FormatError
from elmokit.weights.arrays import SCALE, Storage, pack, round_to, unpack_all
from elmokit.weights.model_dir import WithoutStorage, read_tensors


@pytest.fixture
def weight():
    rows = np.random.default_rng(1).standard_normal((40, 16, 3), dtype=np.float32)
    rows *= np.logspace(-6, 4, 40, dtype=np.float32).reshape(-1, 1, 1)
    rows[7] = 0
    return rows


def test_tensors_come_back(tmp_path):
    tensors = {"a": torch.randn(3, 2), "b": torch.ones(2).half(), "c": torch.zeros(0)}
    save_file(tensors, tmp_path / "w")
    found = read_tensors(tmp_path / "w", advice="")
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    save_file({"a": torch.tensor([1.5]).bfloat16()}, tmp_path / "w")
    assert torch.equal(read_tensors(tmp_path / "w", advice="")["a"], torch.tensor([1.5]))


@pytest.mark.parametrize("content", [b"", b"x" * 40, (2**60).to_bytes(8, "little") + b"{}", None])
def test_damage_is_named_with_the_advice(tmp_path, content):
    if content is not None:
        (tmp_path / "w").write_bytes(content)
    with pytest.raises(FormatError, match=r"w.*Mend it\."):
        read_tensors(tmp_path / "w", advice="Mend it.")


@pytest.mark.parametrize("storage", get_args(Storage))
def test_rounded_weights_come_back_bit_for_bit(weight, storage):
    rounded = round_to(weight, storage)
    vector = round_to(weight[0, 0], storage)
    packed = pack({"w": rounded, "b": vector}, storage)
    assert np.array_equal(round_to(rounded, storage), rounded)
    assert np.array_equal(unpack_all(packed)["w"], rounded)
    if storage.startswith("int"):
        assert (packed["w"].dtype, packed["w" + SCALE].shape) == (np.int8, (40,))
        assert np.array_equal(packed["b"], weight[0, 0])  # vectors are not worth rounding


@pytest.mark.parametrize(("storage", "half"), [("int8", 1 / 254), ("int6", 1 / 62)])
def test_integers_move_no_weight_by_more_than_half_a_step_of_its_row(weight, storage, half):
    largest = np.abs(weight).max((1, 2), keepdims=True)
    error = np.abs(round_to(weight, storage) - weight)
    assert (error <= largest * half * 1.004).all()
    assert error.max() > 0


@pytest.mark.parametrize(
    ("storage", "value"), [("float16", 7e4), ("int8", float("inf")), ("int8", float("nan"))]
)
def test_numbers_beyond_the_format_are_refused(weight, storage, value):
    weight[3, 2, 1] = value
    with pytest.raises(ValueError, match=r"finite"):
        round_to(weight, storage)


def test_modules_without_storage_take_the_tensors_that_are_assigned():
    with WithoutStorage():
        huge = nn.Linear(1 << 20, 1 << 20)
        small = nn.ModuleList([nn.Linear(2, 3), nn.Embedding(4, 2, padding_idx=0)])
    assert huge.weight.is_meta
    tensors = {name: torch.ones(value.shape) for name, value in small.state_dict().items()}
    small.load_state_dict(tensors, assign=True)
    assert all(parameter.requires_grad for parameter in small.parameters())
    assert not nn.Linear(2, 2).weight.is_meta
