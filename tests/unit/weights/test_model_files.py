import dataclasses

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from elmokit.bilm.scalar_mix import LayerMixes
from elmokit.errors import FormatError
from elmokit.inference.elmo import ELMo
from elmokit.weights.locate import PACKAGED_MODELS, find_model, lasting_name, path_of
from elmokit.weights.model_files import TrainedMixes, read_mixes, write_mixes

from ...builders.embedding_models import toy_model

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
    elmo = ELMo(toy_model(), num_mixes=2, layer_norm="batch")
    elmo.set_mixes(torch.from_numpy(MIXES.mix_weights), torch.from_numpy(MIXES.gammas))
    write_mixes(TrainedMixes.of(elmo), tmp_path / "m")
    found = read_mixes(tmp_path / "m")
    assert np.array_equal(found.mix_weights, MIXES.mix_weights)
    assert np.array_equal(found.gammas, MIXES.gammas)
    assert found.layer_norm == "batch"
    with pytest.raises(ValueError, match="'top'; only mixtures of all layers"):
        TrainedMixes.of(ELMo(toy_model(), layers="top"))


@pytest.mark.parametrize(
    ("tensors", "metadata", "message"),
    [
        ({"gammas": torch.ones(1)}, {"layer_norm": "none"}, r"expected `mix_weights`"),
        ({"mix_weights": torch.ones(2, 3), "gammas": torch.ones(1)}, {}, r"got .*\(2, 3\)"),
        ({"mix_weights": torch.ones(1, 3), "gammas": torch.ones(1)}, {}, "`layer_norm`.*None"),
        (
            {"mix_weights": torch.full((1, 3), torch.inf), "gammas": torch.ones(1)},
            {"layer_norm": "none"},
            "not finite",
        ),
    ],
)
def test_other_files_are_refused(tensors, metadata, message, tmp_path):
    save_file(tensors, tmp_path / "m", metadata=metadata)
    with pytest.raises(FormatError, match=message):
        read_mixes(tmp_path / "m")


def test_a_model_directory_goes_before_a_packaged_model_and_other_directories_do_not(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ko").mkdir()
    assert find_model("ko") == PACKAGED_MODELS / "ko"
    assert find_model(tmp_path / "ko") == tmp_path / "ko"
    assert not caplog.records
    (tmp_path / "ko" / "config.json").touch()
    for _ in range(2):
        assert find_model("ko").resolve() == tmp_path / "ko"
    (record,) = caplog.records
    assert f"{tmp_path / 'ko'}, not the packaged model 'ko'" in record.getMessage()


def test_a_packaged_model_is_remembered_by_name_and_others_by_their_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert lasting_name(find_model("ko")) == "ko"
    assert lasting_name(tmp_path / "a" / ".." / "ko") == str(tmp_path / "ko")
    assert path_of("ko") == str(PACKAGED_MODELS / "ko")
    assert path_of(str(tmp_path / "ko")) == str(tmp_path / "ko")


def test_a_file_is_no_model_and_an_interrupted_save_is_told(tmp_path):
    (tmp_path / "model").touch()
    with pytest.raises(FileNotFoundError, match="is a file"):
        find_model(tmp_path / "model")
    (tmp_path / ".other.previous").mkdir()
    with pytest.raises(FileNotFoundError, match=r"interrupted: .*\.other\.previous"):
        find_model(tmp_path / "other")
