"""One choice of the device for all of elmokit."""

import pytest
import torch

from elmokit.bilm.device import pick_device
from elmokit.errors import InputError


def test_auto_is_cuda_where_there_is_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device("auto") == torch.device("cuda")
    assert pick_device("cuda:1") == torch.device("cuda", 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device("auto") == torch.device("cpu")


def test_cuda_without_cuda_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"device='cuda'.*'cpu'"):
        pick_device("cuda")


def test_a_number_beyond_the_last_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(InputError, match=r"'cuda:2'.* 2 .*'cuda:1'"):
        pick_device("cuda:2")


def test_an_unknown_device_is_refused():
    with pytest.raises(InputError, match=r"'gpu'.*'cpu'"):
        pick_device("gpu")


def test_a_device_of_torch_will_do_and_one_that_is_not_here_will_not():
    assert pick_device(torch.device("cpu")) == torch.device("cpu")
    for wrong in ("mps", "None"):
        with pytest.raises(InputError, match=f"'{wrong}'"):
            pick_device(wrong)
