"""Foreign models: what `convert` makes of them, against activations of their own software.

The arrays of the conformance cases are written as TensorFlow checkpoints, TF-Hub modules and
AllenNLP archives by `tests/builders/foreign_models.py`, which shares no code with the readers.
"""

import json
import zipfile

import numpy as np
import pytest
import torch

from elmokit.embed.embedder import Embedder
from elmokit.inference import device
from elmokit.inference.elmo import ELMo
from elmokit.weights.model_dir import load_model, read_bilm_tf

from ..builders import foreign_models as foreign
from ..builders.conversion import convert
from .numpy_bilm import largest_matches, sigmoid, stacked_layers
from .oracles import assert_same_bits, case, read_datasets, run_case, shared_oracles

CHARACTER_CASES = (
    "edge_stateless", "variant_noclip_1layer", "variant_3layer_highway3", "variant_nocnnproj",
    "variant_noproj",
)  # fmt: skip


def check_parity(folder, inputs):
    """Compare with the original implementation and with our reader of its released files."""
    model = load_model(folder)
    outputs = run_case(model, inputs)
    inputs.check_layers(outputs.layers)
    plain = run_case(read_bilm_tf(inputs.options_path, inputs.directory / "weights.hdf5"), inputs)
    for index, layers in outputs.layers.items():
        np.testing.assert_allclose(layers, plain.layers[index], rtol=0, atol=1e-5)
    return model


def arrays_of(inputs):
    options = json.loads(inputs.options_path.read_text())
    return read_datasets(inputs.directory / "weights.hdf5"), options


@pytest.mark.parametrize("name", CHARACTER_CASES)
def test_checkpoints(name, tmp_path):
    inputs = case(name)
    arrays, options = arrays_of(inputs)
    foreign.write_checkpoint(tmp_path / "run", arrays, options, words=9, num_shards=3)
    report = convert(tmp_path / "run", tmp_path / "model")
    assert report.source_format == "bilm-tf checkpoint"
    assert (report.vocabulary, report.softmax, report.max_difference) == (9, True, 0)
    check_parity(tmp_path / "model", inputs)


def test_a_checkpoint_gives_the_bits_of_the_release(tmp_path):
    inputs = case("variant_maxchars20")
    foreign.write_checkpoint(tmp_path / "run", *arrays_of(inputs))
    convert(tmp_path / "run", tmp_path / "model")
    convert(tmp_path / "model", tmp_path / "back")
    written = read_datasets(tmp_path / "back" / "weights.hdf5")
    assert_same_bits(arrays_of(inputs)[0], written)


@pytest.mark.parametrize("name", ["edge_stateless", "edge_stateful"])
def test_tf_hub_modules(name, tmp_path):
    inputs = case(name)
    foreign.write_hub_module(tmp_path / "hub", arrays_of(inputs)[0])
    options = inputs.options_path if name == "edge_stateless" else None  # its clips are not usual
    source = tmp_path / ("hub" if name == "edge_stateless" else "hub/saved_model.pb")
    report = convert(source, tmp_path / "model", options=options)
    assert report.source_format == "TF-Hub module"
    assert any("both clips (3)" in note for note in report.notes) == (options is None)
    check_parity(tmp_path / "model", inputs)


@pytest.mark.parametrize(
    ("name", "archived", "legacy"),
    [
        ("edge_stateless", True, True),
        ("edge_stateful", False, False),
        ("variant_tanh_nohighway", True, True),
        ("variant_3layer_highway3", True, False),
    ],
)
def test_allennlp_archives(name, archived, legacy, tmp_path):
    inputs = case(name)
    arrays, options = arrays_of(inputs)
    weights = list(np.linspace(-0.5, 1.0, options["lstm"]["n_layers"] + 1))
    state = foreign.task_state({"embedder.token_embedder_elmo._elmo": arrays}, [(weights, 1.5)])
    files = {"fta/model.elmo.options_file": json.dumps(options).encode()} if archived else {}
    path = foreign.write_archive(tmp_path / "a.tar.gz", state, files=files, legacy=legacy)
    report = convert(path, tmp_path / "model")
    assert report.source_format == "AllenNLP archive"
    assert report.num_mixes == 1
    model = check_parity(tmp_path / "model", inputs)

    elmo = ELMo(model, dropout=0.0, mixes=tmp_path / "model" / "mixes.safetensors").eval()
    sentence = next(one for one in inputs.sentences if len(one) > 3)
    with torch.no_grad():
        layers = model(model.encode([sentence])).layers[:, 0, 1:-1].numpy()
        mixed = elmo(elmo.encode([sentence])).mixes[0][0].numpy()
    shares = np.exp(weights) / np.exp(weights).sum()
    np.testing.assert_allclose(mixed, 1.5 * np.tensordot(shares, layers, 1), rtol=0, atol=1e-5)


def test_a_zip_with_a_folder_of_any_kind(tmp_path):
    inputs = case("variant_maxchars20")
    folder = foreign.write_checkpoint(tmp_path / "run", *arrays_of(inputs))
    with zipfile.ZipFile(tmp_path / "136.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in folder.iterdir():
            archive.write(path, f"136/{path.name}")
    report = convert(tmp_path / "136.zip", tmp_path / "model")
    assert report.source_format == "bilm-tf checkpoint"
    check_parity(tmp_path / "model", inputs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["136.zip", "model", "run"]


def test_an_archive_of_allennlp_itself(tmp_path):
    """A tagger that AllenNLP trained, with what AllenNLP made of sentences."""
    folder = shared_oracles() / "imports" / "allennlp_tagger"
    convert(folder / "model.tar.gz", tmp_path / "model")
    model = load_model(tmp_path / "model")
    elmo = ELMo(model, dropout=0.0, mixes=tmp_path / "model" / "mixes.safetensors").eval()
    sentences = json.loads((folder / "sentences.json").read_text())
    with np.load(folder / "expected.npz") as expected, torch.no_grad():
        for index, sentence in enumerate(sentences):
            layers = model(model.encode([sentence])).layers[:, 0, 1:-1]
            mixed = elmo(elmo.encode([sentence])).mixes[0][0]
            for name, ours in (("layers", layers), ("mixed", mixed)):
                theirs = expected[f"{name}_{index:03d}"]
                np.testing.assert_allclose(ours.numpy(), theirs, rtol=0, atol=1e-5)


def many_langs_tokens(written, words, max_characters=30):
    """The token layer of ELMoForManyLangs for <bos>, words, <eos>, from its description."""
    ids, word_ids = written["characters"], written["words"]
    token = {name: np.asarray(one, np.float64) for name, one in written["token"].items()}
    filters = [
        (token[f"convolutions.{i}.weight"].transpose(2, 1, 0), token[f"convolutions.{i}.bias"])
        for i in range(len(written["filters"]))
    ]
    vectors = []
    for given in ("<bos>", *words, "<eos>"):
        word = given if given in ("<bos>", "<eos>") else given[: max_characters - 2]
        characters = [word] if word in ("<bos>", "<eos>") else word
        codes = [ids.get(character, ids["<oov>"]) for character in characters]
        row = [ids["<eow>"], *codes, ids["<bow>"]]  # in this order, as the original has them
        row += [ids["<pad>"]] * (max_characters - len(row))
        x = token["char_emb_layer.embedding.weight"][row]
        y = largest_matches(x, filters, "relu")
        for k in range(2):
            name = f"highways._layers.{k}"
            values, gate = np.split(token[f"{name}.weight"] @ y + token[f"{name}.bias"], 2)
            y = sigmoid(gate) * y + sigmoid(-gate) * np.maximum(values, 0)
        word_row = token["word_emb_layer.embedding.weight"][word_ids.get(word, word_ids["<oov>"])]
        joined = np.concatenate((word_row, y))
        vectors.append(token["projection.weight"] @ joined + token["projection.bias"])
    return np.stack(vectors)


@pytest.mark.parametrize(("compiled", "legacy"), [(True, False), (False, True)])
def test_elmo_for_many_langs(compiled, legacy, tmp_path, monkeypatch):
    """The LSTM stacks are those of a case; the token layer is computed here."""
    if not compiled:
        monkeypatch.setattr(device, "load_kernels", lambda: None)
    arrays, options = arrays_of(case("edge_stateless"))
    written = foreign.write_many_langs(tmp_path / "136", arrays, options, legacy=legacy)
    report = convert(tmp_path / "136", tmp_path / "model")
    assert report.source_format == "ELMoForManyLangs folder"
    assert (report.max_difference, report.notes) == (0, ())
    model = load_model(tmp_path / "model")
    sentences = [
        ["the", "bank", "강", "은행", "unheard", "<oov>"],
        ["x" * 40, "", "\u3000", "é", "☃"],
        [],
    ]
    embedded = Embedder(model).embed(sentences)
    for words, layers in zip(sentences, embedded, strict=True):
        tokens = many_langs_tokens(written, words)
        expected = stacked_layers(options, arrays, tokens)
        with torch.no_grad():
            plain = model(model.encode([words])).layers[:, 0].numpy()
        np.testing.assert_allclose(plain, expected, rtol=0, atol=1e-5)
        np.testing.assert_allclose(layers, expected[:, 1:-1], rtol=0, atol=1e-5)
    cut = model.char_vocab.encode_words(["x" * 40, "x" * 28])
    assert (cut[0] == cut[1]).all(), "words are looked up as they are cut"
