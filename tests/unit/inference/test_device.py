import numpy as np
import pytest
import torch

from elmokit.errors import InputError
from elmokit.inference.device import check_precision, find_device, has_quick_bf16, pick_device

from ...builders.embedding_models import random_sentences, run_engine, toy_model

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("kind", "median", "worst"), [("bf16", 0.9999, 0.995), ("int8", 0.999, 0.99)]
)
def test_half_and_quarter_precision_stay_close_to_fp32(backend, kind, median, worst, caplog):
    model = toy_model(cell_dim=64, projection_dim=32)
    sentences = random_sentences(40)
    exact = run_engine(model, sentences)
    rough = run_engine(model, sentences, precision=kind)
    assert rough.state.cell.dtype == torch.float32
    if backend == "numpy":  # which has fp32 only
        assert np.array_equal(exact.vectors[0], rough.vectors[0])
        assert f"{kind} needs the compiled kernels: computing in fp32" in caplog.text
        assert not has_quick_bf16("cpu")
        return
    assert not has_quick_bf16("cuda")
    assert not caplog.records
    x, y = (np.concatenate([one.reshape(-1, 64) for one in out.vectors]) for out in (exact, rough))
    values = (x * y).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    assert np.median(values) >= median
    assert values.min() >= worst
    assert values.min() < 1 - 1e-9  # it is another arithmetic


@pytest.mark.parametrize("kind", ["int4", "fp16", ""])
def test_other_precisions_are_refused_with_the_choices(kind):
    with pytest.raises(ValueError, match=f"`precision` .*fp32, bf16, int8, .*{kind!r}"):
        check_precision(kind)


@pytest.mark.parametrize(
    ("device", "num_gpus", "expected"),
    [("auto", 2, "cuda"), ("cuda:1", 2, "cuda:1"), ("auto", 0, "cpu"), (CPU, 0, "cpu")],
)
def test_devices_that_are_here(monkeypatch, device, num_gpus, expected):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: num_gpus)
    assert pick_device(device) == torch.device(expected)
    assert find_device(device) == expected


@pytest.mark.parametrize("device", ["cuda:2", "gpu", "mps", "None"])
@pytest.mark.parametrize("num_gpus", [0, 2])
def test_other_devices_are_refused(monkeypatch, device, num_gpus):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: num_gpus)
    with pytest.raises(InputError, match=rf"'{device}'.*'cpu'.* {num_gpus} "):
        find_device(device)
