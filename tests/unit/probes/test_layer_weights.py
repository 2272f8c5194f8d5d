"""Learned layer weights, as numbers and as a picture."""

import json

import pytest
import torch
from safetensors.torch import save_file

from elmokit.config import to_dict
from elmokit.errors import FormatError
from elmokit.probes import layer_weights

from ...builders.task_models import full_inputs

LN2 = 0.6931472


def write_run(run_dir, *, embeddings="elmo", **mixes):
    """Write what a task run leaves behind, as far as it tells of layers."""
    run_dir.mkdir()
    positions = "both" if len(mixes) == 2 else next(iter(mixes), "input")
    inputs = to_dict(full_inputs(embeddings=embeddings, positions=positions))
    config = {"task": "nli", "inputs": inputs}
    metadata = {"config": config, "labels": [], "bilm": None, "vectors": None}
    (run_dir / "task.json").write_text(json.dumps(metadata), encoding="utf-8")
    tensors = {"to_tags.weight": torch.zeros(1)}
    for index, (weights, gamma) in enumerate(mixes.values()):
        name = f"inputs.mixes.scalar_mixes.{index}"
        tensors[f"{name}.mix_weights"] = torch.tensor(weights)
        tensors[f"{name}.gamma"] = torch.tensor(gamma)
    save_file(tensors, run_dir / "model.safetensors")
    return run_dir


def test_weights_are_shares_at_each_position_of_use(tmp_path):
    mixes = {"input": ([LN2, 0.0, 0.0], 0.5), "output": ([0.0, 0.0, LN2], 2.0)}
    run = layer_weights.read_layer_weights(write_run(tmp_path / "run", **mixes))
    assert (run.run, run.task, run.embeddings) == ("run", "nli", "elmo")
    assert [(mix.position, mix.weights, mix.gamma) for mix in run.mixes] == [
        ("input", pytest.approx((0.5, 0.25, 0.25)), 0.5),
        ("output", pytest.approx((0.25, 0.25, 0.5)), 2.0),
    ]
    # a run reads layers where its task does
    run = write_run(tmp_path / "other", embeddings="random", output=([0.0, 0.0], 1.0))
    (mix,) = layer_weights.read_layer_weights(run).mixes
    assert (mix.position, mix.weights) == ("output", (0.5, 0.5))


def test_damage_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"task\.json"):
        layer_weights.read_layer_weights(tmp_path)
    with pytest.raises(FormatError, match=r"/empty/model\.safetensors "):
        layer_weights.read_layer_weights(write_run(tmp_path / "empty"))


def test_a_heat_map_shows_every_weight_and_label(tmp_path):
    first = write_run(tmp_path / "한국어 $run$", input=([0.0, LN2, 0.0], 1.0))
    other = write_run(tmp_path / "other", input=([0.0, 0.0], 1.0), output=([LN2, 0.0], 1.0))
    runs = [layer_weights.read_layer_weights(run) for run in (first, other)]
    layer_weights.plot_layer_weights(runs, tmp_path / "weights.svg")
    drawing = (tmp_path / "weights.svg").read_text(encoding="utf-8")
    for label in ("input", "output", "other", "layer 2", "0.25", "0.67"):
        assert f"<!-- {label} -->" in drawing
