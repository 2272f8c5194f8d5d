"""What a result says of its machine."""

import os

import pytest
import torch

from elmokit.experiments.runs.provenance import provenance


@pytest.mark.parametrize(
    ("cores", "threads", "expected"),
    [(1, 1, ", 1 core, 1 thread"), (16, 2, ", 16 cores, 2 threads"), (None, 1, ", 1 core, ")],
)
def test_cores_and_threads_are_counted(monkeypatch, cores, threads, expected):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert expected in provenance("cpu")["hardware"]


def test_a_gpu_is_named_if_it_computed(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"a GPU as {device}")
    assert "GPU" not in provenance("cpu")["hardware"]
    assert provenance("auto")["hardware"].endswith(", a GPU as cuda")
