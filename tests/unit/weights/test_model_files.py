import dataclasses

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from elmokit.bilm.scalar_mix import LayerMixes
from elmokit.errors import FormatError
from elmokit.weights.model_files import TrainedMixes, read_mixes, write_mixes

MIXES = TrainedMixes(
    mix_weights=np.array([[0.0, 1.0, 0.5], [2.0, -1.0, 0.0]], dtype=np.float32),
    gammas=np.array([1.5, 0.1], dtype=np.float32), layer_norm="token",
)  # fmt: skip


@pytest.mark.parametrize("layer_norm", ["none", "token", "batch"])
def test_arrays_are_mixed_as_tensors_are(layer_norm):
    layers = np.random.default_rng(0).normal(1.0, 2.0, (3, 7, 4)).astype(np.float32)
    mixes = dataclasses.replace(MIXES, layer_norm=layer_norm)
    module = LayerMixes(3, num_mixes=2, layer_norm=layer_norm, dropout=0.0)
    module.set_mixes(torch.from_numpy(MIXES.mix_weights), torch.from_numpy(MIXES.gammas))
    tensor = torch.from_numpy(layers).unsqueeze(1)  # (L, 1, P, 2D)
    for index in range(2):
        expected = module.mix(index, tensor, torch.ones(1, 7, dtype=torch.bool))[0]
        np.testing.assert_allclose(
            mixes.mix(index, layers), expected.detach().numpy(), rtol=1e-5, atol=1e-6
        )


def test_what_was_trained_is_kept(tmp_path):
    write_mixes(MIXES, tmp_path / "m")
    found = read_mixes(tmp_path / "m")
    assert np.array_equal(found.mix_weights, MIXES.mix_weights)
    assert np.array_equal(found.gammas, MIXES.gammas)
    assert found.layer_norm == "token"
    (tmp_path / "m").write_bytes(b"")
    assert np.array_equal(found.gammas, MIXES.gammas), "of the file"


@pytest.mark.parametrize(
    ("rows", "gammas", "norm", "message"),
    [
        (2, 1, "none", r"expected `mix_weights`.*\(2, 3\)"),
        (1, 1, "most", "`layer_norm`.*'most'"), (1, np.inf, "none", "not finite"),
    ],
)  # fmt: skip
def test_other_files_are_refused(rows, gammas, norm, message, tmp_path):
    tensors = {"mix_weights": torch.ones(rows, 3), "gammas": torch.tensor([float(gammas)])}
    save_file(tensors, tmp_path / "m", metadata={"layer_norm": norm})
    with pytest.raises(FormatError, match=message):
        read_mixes(tmp_path / "m")
