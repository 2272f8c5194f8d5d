"""Tensors of files: checked for type and value; modules that take no memory."""

import re
from typing import get_args

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from elmokit.errors import FormatError
from elmokit.weights.arrays import SCALE, Storage, mismatch, pack, round_to, unpack_all
from elmokit.weights.model_dir import WithoutStorage, read_tensors


def test_tensors_come_back(tmp_path):
    tensors = {"a": torch.randn(3, 2), "b": torch.ones(2).half(), "c": torch.zeros(0)}
    save_file(tensors, tmp_path / "w")
    found = read_tensors(tmp_path / "w", advice="")
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    save_file({"a": torch.tensor([1.5]).bfloat16()}, tmp_path / "w")
    assert torch.equal(read_tensors(tmp_path / "w", advice="")["a"], torch.tensor([1.5]))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"b": (3,), "a": (2, 4)}, None),
        ({"a": (2, 4)}, r"`b`.*missing.*\(3,\)"),
        ({"a": (4, 2), "b": (3,)}, r"`a` has shape \(4, 2\), expected \(2, 4\)"),
        ({"d": (1,), "a": (2, 4), "c": (5,), "b": (3,)}, r"`c` .*\(5,\).*none"),
    ],
)
def test_the_first_difference_is_named(found, expected):
    fault = mismatch({"a": (2, 4), "b": (3,)}, found)
    assert fault is None if expected is None else re.search(expected, fault)


@pytest.mark.parametrize("content", [b"", b"x" * 40, (2**60).to_bytes(8, "little") + b"{}", None])
def test_damage_is_named_with_the_advice(tmp_path, content):
    if content is not None:
        (tmp_path / "w").write_bytes(content)
    with pytest.raises(FormatError, match=r"w.*Mend it\."):
        read_tensors(tmp_path / "w", advice="Mend it.")


def test_modules_without_storage_take_the_tensors_that_are_assigned():
    with WithoutStorage():
        huge = nn.Linear(1 << 20, 1 << 20)
        embedding = nn.Embedding(4, 2, padding_idx=0)
        small = nn.ModuleList([nn.Linear(2, 3), embedding, nn.Conv1d(1, 2, 3)])
    assert huge.weight.is_meta
    assert all(parameter.is_meta for parameter in small.parameters())
    tensors = {name: torch.ones(value.shape) for name, value in small.state_dict().items()}
    small.load_state_dict(tensors, assign=True)
    assert all(parameter.requires_grad for parameter in small.parameters())
    assert not nn.Linear(2, 2).weight.is_meta


@pytest.fixture
def weight():
    rows = np.random.default_rng(1).standard_normal((40, 16, 3), dtype=np.float32)
    rows *= np.logspace(-6, 4, 40, dtype=np.float32).reshape(-1, 1, 1)
    rows[7] = 0
    return rows


@pytest.mark.parametrize("storage", get_args(Storage))
def test_rounded_weights_come_back_bit_for_bit(weight, storage):
    rounded = round_to(weight, storage)
    assert np.array_equal(round_to(rounded, storage), rounded)
    assert np.array_equal(unpack_all(pack({"w": rounded}, storage))["w"], rounded)


@pytest.mark.parametrize(("storage", "half"), [("int8", 1 / 254), ("int6", 1 / 62)])
def test_integers_move_no_weight_by_more_than_half_a_step_of_its_row(weight, storage, half):
    largest = np.abs(weight).max((1, 2), keepdims=True)
    error = np.abs(round_to(weight, storage) - weight)
    assert (error <= largest * half * 1.004).all()
    assert error.max() > 0


def test_int8_stores_one_byte_a_weight_and_a_scale_a_row(weight):
    packed = pack({"w": round_to(weight, "int8"), "b": weight[0, 0]}, "int8")
    assert packed["w"].dtype == np.int8
    assert packed["w" + SCALE].shape == (40,)
    assert np.array_equal(packed["b"], weight[0, 0])  # vectors are not worth rounding


@pytest.mark.parametrize(
    ("storage", "value"), [("float16", 7e4), ("int8", float("inf")), ("int8", float("nan"))]
)
def test_numbers_beyond_the_format_are_refused(weight, storage, value):
    weight[3, 2, 1] = value
    with pytest.raises(ValueError, match=r"finite"):
        round_to(weight, storage)
