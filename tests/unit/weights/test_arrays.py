"""Tensors of files: checked for type and value, stored in smaller formats."""

from typing import get_args

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file as save_numpy
from safetensors.torch import save_file

from elmokit.weights.arrays import SCALE, Storage, StoredArrays, pack, round_all


def round_to(array, storage):
    return round_all({"w": array}, storage)["w"]


@pytest.fixture
def weight():
    rows = np.random.default_rng(1).standard_normal((40, 16, 3), dtype=np.float32)
    rows *= np.logspace(-6, 4, 40, dtype=np.float32).reshape(-1, 1, 1)
    rows[7] = 0
    return rows


def test_tensors_come_back(tmp_path):
    tensors = {"a": torch.ones(2).half(), "b": torch.zeros(0), "c": torch.ones(1).bfloat16()}
    save_file(tensors, tmp_path / "w")
    found = StoredArrays(tmp_path / "w", advice="")
    assert found.keys() == tensors.keys()
    assert all(np.array_equal(found[name], tensors[name].float()) for name in tensors)


@pytest.mark.parametrize("storage", get_args(Storage))
def test_rounded_weights_come_back_bit_for_bit(tmp_path, weight, storage):
    rounded = round_to(weight, storage)
    vector = round_to(weight[0, 0], storage)
    packed = pack({"w": rounded, "b": vector}, storage)
    assert np.array_equal(round_to(rounded, storage), rounded)
    save_numpy(packed, tmp_path / "w")
    stored = StoredArrays(tmp_path / "w", shapes={"w": (40, 16, 3), "b": (3,)}, advice="")
    assert np.array_equal(stored["w"], rounded)
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
