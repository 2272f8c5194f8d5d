"""Models of other software; `tests/parity/test_imports.py` has their activations."""

import json

import numpy as np
import pytest
import torch

from elmokit.errors import FormatError, InputError
from elmokit.weights.model_dir import load_model
from elmokit.weights.model_files import read_mixes
from elmokit.weights.readers.tensor_bundle import TensorBundle

from ....builders import foreign_models as foreign
from ....builders.conversion import convert
from ....parity.oracles import case, read_datasets

TOP = "text_field_embedder.token_embedder_elmo"


@pytest.fixture(scope="module")
def written():
    """The arrays and the options of a small model."""
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


@pytest.fixture
def run(written, tmp_path):
    """A run of the original's trainer."""
    return foreign.write_checkpoint(tmp_path / "run", *written, words=12)


def test_the_softmax_has_the_weights_of_its_words(run, tmp_path):
    convert(run, tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert model.word_vocab.words[:4] == ("</S>", "<S>", "<UNK>", "w0")
    assert model.softmax_config.kind == "sampled"
    bundle = TensorBundle(run / "model.ckpt-1250.index")
    for name, ours in (("W", model.softmax.weight), ("b", model.softmax.bias)):
        theirs = bundle.read(bundle.entries[f"lm/softmax/{name}"])
        np.testing.assert_array_equal(ours.detach().numpy(), theirs)


def test_the_last_checkpoint_is_read_unless_another_is_chosen(run, written, tmp_path):
    early = {foreign.variable_name(name): array * 0.5 for name, array in written[0].items()}
    foreign.write_bundle(run / "model.ckpt-99", early)
    (run / "elmo-vocab.txt").unlink()
    settings = {"encoder_only": True}
    first = convert(run, tmp_path / "a", **settings)
    assert "model.ckpt-1250" in first.source
    chosen = convert(run, tmp_path / "c", weights="model.ckpt-99", **settings)
    assert chosen.model_hash != first.model_hash


def test_without_a_vocabulary_only_the_encoder_is_converted(run, tmp_path):
    (run / "elmo-vocab.txt").rename(tmp_path / "words")
    with pytest.raises(FormatError, match=r"softmax over 12 words.*--vocab.*--encoder-only"):
        convert(run, tmp_path / "model")
    report = convert(run, tmp_path / "model", encoder_only=True)
    assert (report.vocabulary, report.softmax) == (None, False)
    report = convert(run, tmp_path / "other", vocab=tmp_path / "words")
    assert (report.vocabulary, report.softmax) == (12, True)


@pytest.fixture
def folder(written, tmp_path):
    """A folder of ELMoForManyLangs."""
    foreign.write_many_langs(tmp_path / "136", *written)
    return tmp_path / "136"


def test_the_configuration_is_the_one_that_config_json_names_or_the_only_one(folder, tmp_path):
    network = json.loads((folder / "configs" / "cnn_50.json").read_text())
    (folder / "configs" / "cnn_0.json").write_text(json.dumps(network | {"encoder": {}}))
    first = convert(folder, tmp_path / "a")
    assert first.notes == (), "config.json names the right one"
    (folder / "config.json").unlink()
    with pytest.raises(FormatError, match=r"2 files .*cnn_0\.json.*--options"):
        convert(folder, tmp_path / "b")
    report = convert(folder, tmp_path / "b", options="configs/cnn_50.json")
    assert report.model_hash == first.model_hash
    for name in ("cnn_0.json", "cnn_50.json"):
        (folder / "configs" / name).unlink()
    assert "both clips (3)" in convert(folder, tmp_path / "c").notes[0]


def test_a_missing_list_or_tensor_file_is_named(folder, tmp_path):
    lists = (folder / "char.dic").read_bytes()
    (folder / "char.dic").write_text("a\t0\n")
    with pytest.raises(FormatError, match=r"no lists of ids .*<pad>, <bow>.* \d+ rows"):
        convert(folder, tmp_path / "model")
    (folder / "char.dic").write_bytes(lists)
    (folder / "encoder.pkl").unlink()
    with pytest.raises(FormatError, match=r"no files have the tensor .*encoder\.pkl"):
        convert(folder, tmp_path / "model")


def with_an_id_twice(lines):
    return [*lines[:5], lines[5].rpartition("\t")[0] + "\t4", *lines[6:]]


@pytest.mark.parametrize("name", ["char.dic", "word.dic"])
@pytest.mark.parametrize("change", [lambda lines: lines[:-1], with_an_id_twice])
def test_a_list_has_a_line_for_each_row_of_its_table(folder, tmp_path, name, change):
    lines = (folder / name).read_text(encoding="utf-8").split("\n")[:-1]
    changed = change(lines)
    (folder / name).write_text("\n".join(changed) + "\n", encoding="utf-8")
    with pytest.raises(FormatError) as raised:
        convert(folder, tmp_path / "model")
    for part in (name, f"{len(changed)} lines", f"{len(lines)} rows"):
        assert part in str(raised.value)
