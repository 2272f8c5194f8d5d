"""Tensors of files: checked for type and value; modules that take no memory."""

import re

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from elmokit.errors import FormatError
from elmokit.weights.arrays import mismatch
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
