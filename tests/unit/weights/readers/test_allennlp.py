"""Archives of AllenNLP; `tests/parity/test_imports.py` has their activations."""

import json

import pytest
import torch

from elmokit.errors import FormatError, InputError
from elmokit.inference.elmo import ELMo
from elmokit.weights.model_dir import load_model
from elmokit.weights.model_files import read_mixes

from ....builders import foreign_models as foreign
from ....builders.conversion import convert
from ....parity.oracles import case, read_datasets

TOP = "text_field_embedder.token_embedder_elmo"


@pytest.fixture(scope="module")
def written():
    inputs = case("edge_stateful")
    arrays = read_datasets(inputs.directory / "weights.hdf5")
    return arrays, json.loads(inputs.options_path.read_text())


def test_all_mixtures_are_kept(written, tmp_path):
    mixes = [([0.5, 0.0, -1.0], 2.0), ([0.0, 0.25, 0.0], 0.5)]
    state = foreign.task_state({"elmo": written[0]}, mixes)
    path = foreign.write_archive(tmp_path / "m.tar.gz", state, embedder={"do_layer_norm": True})
    assert convert(path, tmp_path / "model").num_mixes == 2
    found = read_mixes(tmp_path / "model" / "mixes.safetensors")
    assert found.mix_weights.tolist() == [weights for weights, _ in mixes]
    assert found.gammas.tolist() == [2.0, 0.5]
    assert found.layer_norm == "batch_with_boundaries"
    elmo = ELMo(tmp_path / "model", mixes=tmp_path / "model" / "mixes.safetensors")
    assert len(elmo.scalar_mixes) == 2
    assert [mix.gamma.item() for mix in elmo.scalar_mixes] == [2.0, 0.5]
    assert all(mix.mix_weights.requires_grad for mix in elmo.scalar_mixes)


def test_several_elmos_are_listed_and_chosen_by_name(written, tmp_path):
    """The layout of multilingual embedders: one below the other, each with an alignment."""
    arrays, options = written
    other = {**arrays, "char_embed": arrays["char_embed"] * 0.5}
    state = foreign.task_state({f"{TOP}.elmo_en": arrays, f"{TOP}.elmo_ko": other}, [])
    state[f"{TOP}.aligning_en.weight"] = torch.eye(4)
    for key, tensor in foreign.mix_state([0.0, 1.0, 2.0], 3.0).items():
        state[f"{TOP}.scalar_mix_0.{key}"] = tensor
    with_clip = {**options, "lstm": {**options["lstm"], "cell_clip": 1.5}}
    files = {
        f"fta/{TOP}.options_files.{name}": json.dumps(one).encode()
        for name, one in (("en", options), ("ko", with_clip))
    }
    path = foreign.write_archive(tmp_path / "m.tar.gz", state, files=files)
    with pytest.raises(
        InputError, match=rf"m.tar.gz/weights.th has 2 ELMos: {TOP}.elmo_en, {TOP}.elmo_ko.*--name"
    ):
        convert(path, tmp_path / "model")
    with pytest.raises(InputError, match=r"--name, got 'elmo_fr'"):
        convert(path, tmp_path / "model", name="elmo_fr")
    for name, clip in (("elmo_en", options["lstm"]["cell_clip"]), (f"{TOP}.elmo_ko", 1.5)):
        report = convert(path, tmp_path / "model", name=name, overwrite=True)
        assert report.num_mixes == 1
        assert any("aligning" in note for note in report.notes)
        assert load_model(tmp_path / "model").config.lstm.cell_clip == clip


def test_a_transformer_is_refused_by_name(tmp_path):
    prefix = "text_field_embedder.token_embedder_elmo._lm._contextualizer._forward_transformer."
    state = {f"{prefix}layers.0.self_attn.linears.0.weight": torch.ones(2, 2)}
    with pytest.raises(FormatError, match=r"m\.tar\.gz/weights\.th: .*a transformer ELMo"):
        convert(foreign.write_archive(tmp_path / "m.tar.gz", state), tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("_elmo_lstm.backward_layer_1.state_linearity.bias", lambda one: one[:-4], "layer_1"),
        ("_elmo_lstm.forward_layer_0.state_projection.weight", lambda one: one[None], "projection"),
        ("_token_embedder.char_conv_1.weight", lambda one: one[:, :2], "CNN/W_cnn_1"),
        ("_token_embedder.unheard_of", lambda one: torch.ones(1), "unheard_of"),
    ],
)
def test_tensors_that_do_not_fit_are_named(written, name, change, told, tmp_path):
    """By their own name or, once they are in the original's layout, by its name."""
    state = foreign.task_state({"elmo": written[0]}, [])
    key = f"elmo._elmo_lstm.{name}"
    state[key] = change(state.get(key))
    with pytest.raises(FormatError, match=rf"weights\.th: .*{told}"):
        convert(foreign.write_archive(tmp_path / "m.tar.gz", state), tmp_path / "model")
