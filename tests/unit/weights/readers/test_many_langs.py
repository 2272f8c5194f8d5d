"""Folders of ELMoForManyLangs; `tests/parity/test_imports.py` has their activations."""

import json
import zipfile

import pytest
import torch

from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError, InputError
from elmokit.inspection.trace import trace
from elmokit.training.pretraining.finetune import FinetuneConfig, finetune
from elmokit.weights.bilm_tf import write_bilm_tf
from elmokit.weights.convert import convert
from elmokit.weights.model_dir import load_model

from ....builders import foreign_models as foreign
from ....parity.oracles import case, read_datasets


@pytest.fixture(scope="module")
def written():
    inputs = case("edge_stateless")
    arrays = read_datasets(inputs.directory / "weights.hdf5")
    return arrays, json.loads(inputs.options_path.read_text())


@pytest.fixture
def folder(written, tmp_path):
    foreign.write_many_langs(tmp_path / "136", *written)
    return tmp_path / "136"


@pytest.fixture
def model(folder, tmp_path):
    convert(folder, tmp_path / "model")
    return load_model(tmp_path / "model")


def test_names_mean_nothing(folder, tmp_path):
    first = convert(folder, tmp_path / "a").model_hash
    for name, other in (("encoder.pkl", "1"), ("token_embedder.pkl", "2"), ("char.dic", "3")):
        (folder / name).rename(folder / other)
    (folder / "word.dic").rename(folder / "char.dic")
    assert convert(folder, tmp_path / "b").model_hash == first


def test_zips_of_either_kind(folder, tmp_path):
    """Stored without compression, the first file's own header is near that of the archive."""
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(tmp_path / "136.zip", "w", compression) as archive:
            for name in ("encoder.pkl", "token_embedder.pkl", "char.dic", "word.dic"):
                archive.write(folder / name, name)
        report = convert(tmp_path / "136.zip", tmp_path / "a", overwrite=True)
        assert report.source_format == "ELMoForManyLangs folder"


def test_a_name_of_one_model_among_others_has_no_use(folder, tmp_path):
    with pytest.raises(InputError, match="no use for --name"):
        convert(folder, tmp_path / "model", name="elmo")


def test_saved_and_loaded_it_is_the_same(model, tmp_path):
    model.save(tmp_path / "again")
    again = load_model(tmp_path / "again")
    assert again.model_hash() == model.model_hash()
    assert again.char_vocab.lexicon == model.char_vocab.lexicon
    words = ["the", "강", "unheard", "<S>", "", "x" * 60]
    assert (again.char_vocab.encode_words(words) == model.char_vocab.encode_words(words)).all()
    assert "characters (by list), at most 28 per word, and 5 words" in model.card()


def test_lists_of_another_model_are_refused(model, tmp_path):
    path = tmp_path / "model" / "lexicon.json"
    lists = json.loads(path.read_text())
    lists["words"].reverse()
    path.write_text(json.dumps(lists))
    with pytest.raises(FormatError, match="not those that the configuration describes"):
        load_model(tmp_path / "model")
    path.unlink()
    with pytest.raises(FormatError, match=r"lexicon\.json is missing"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_low_precision_is_near(model, precision):
    sentences = [["the", "bank", "강"], ["unheard"]]
    exact = Embedder(model).embed(sentences)
    for ours, other in zip(
        exact, Embedder(model, precision=precision).embed(sentences), strict=True
    ):
        cosine = (ours * other).sum(-1) / (abs(ours**2).sum(-1) * abs(other**2).sum(-1)) ** 0.5
        assert cosine.min() > 0.98


def test_what_needs_bytes_says_so(model, tmp_path):
    with pytest.raises(InputError, match="lexicon"):
        write_bilm_tf(model, tmp_path / "o.json", tmp_path / "w.hdf5")
    with pytest.raises(InputError, match="no bytes to trace"):
        trace(model, ["the"])
    (tmp_path / "text.txt").write_text("the bank\n")
    with pytest.raises(InputError, match="only models of bytes are fine-tuned"):
        finetune(FinetuneConfig(), str(tmp_path / "model"), [tmp_path / "text.txt"], tmp_path / "r")


def test_configurations(folder, tmp_path):
    network = json.loads((folder / "configs" / "cnn_50.json").read_text())
    (folder / "configs" / "cnn_0.json").write_text(json.dumps(network | {"encoder": {}}))
    first = convert(folder, tmp_path / "a")
    assert first.notes == (), "config.json names the right one"
    (folder / "config.json").unlink()
    with pytest.raises(FormatError, match=r"several configurations: .*cnn_0\.json.*--options"):
        convert(folder, tmp_path / "b")
    report = convert(folder, tmp_path / "b", options="configs/cnn_50.json")
    assert report.model_hash == first.model_hash
    for name in ("cnn_0.json", "cnn_50.json"):
        (folder / "configs" / name).unlink()
    assert "both clips (3)" in convert(folder, tmp_path / "c").notes[0]
    for part, name in (("encoder", "lstm"), ("token_embedder", "lstm")):
        other = {**network, part: {**network[part], "name": name}}
        (folder / "config.json").write_text(json.dumps(other))
        with pytest.raises(FormatError, match=r"its configuration has 'lstm'"):
            convert(folder, tmp_path / "d")


def test_half_a_folder(folder, tmp_path):
    lists = {name: (folder / name).read_bytes() for name in ("char.dic", "word.dic")}
    for name, expected in (("char.dic", "<pad>, <bow>"), ("word.dic", "<oov>, <bos>, <eos>")):
        (folder / name).write_text("a\t0\n")
        with pytest.raises(FormatError, match=rf"no lists of ids .*{expected}.* \d+ rows"):
            convert(folder, tmp_path / "model")
        (folder / name).write_bytes(lists[name])
    (folder / "encoder.pkl").unlink()
    with pytest.raises(FormatError, match=r"no files have the tensor .*encoder\.pkl"):
        convert(folder, tmp_path / "model")


def test_damaged_lists(folder, tmp_path):
    for content in (b"a\t0\n\xff\t1\n", b"a\t0\nb\tx\n", b"a\t0\nb\t1\t2\n"):
        (folder / "char.dic").write_bytes(content)
        with pytest.raises(FormatError, match=r"char\.dic, line 2: "):
            convert(folder, tmp_path / "model")


def cut(lines):
    return lines[:-1]


def without_a_line_in_the_middle(lines):
    return [*lines[:5], *lines[6:]]


def longer(lines):
    return [*lines, f"more\t{len(lines)}"]


def with_an_id_twice(lines):
    return [*lines[:5], lines[5].rpartition("\t")[0] + "\t4", *lines[6:]]


def with_a_token_twice(lines):
    return [*lines[:5], lines[4].rpartition("\t")[0] + "\t5", *lines[6:]]


@pytest.mark.parametrize("name", ["char.dic", "word.dic"])
@pytest.mark.parametrize(
    "change", [cut, without_a_line_in_the_middle, longer, with_an_id_twice, with_a_token_twice]
)
def test_a_list_has_a_line_for_each_row_of_its_table(folder, tmp_path, name, change):
    lines = (folder / name).read_text(encoding="utf-8").split("\n")[:-1]
    changed = change(lines)
    (folder / name).write_text("\n".join(changed) + "\n", encoding="utf-8")
    with pytest.raises(FormatError) as raised:
        convert(folder, tmp_path / "model")
    for part in (name, f"{len(changed)} lines", f"{len(lines)} rows"):
        assert part in str(raised.value)


@pytest.mark.parametrize("name", ["config.json", "configs/cnn_50.json", "char.dic", "word.dic"])
def test_a_byte_order_mark_changes_nothing(folder, tmp_path, name):
    expected = convert(folder, tmp_path / "a")
    path = folder / name
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    report = convert(folder, tmp_path / "b")
    assert (report.model_hash, report.notes) == (expected.model_hash, ())


@pytest.mark.parametrize("name", ["config.json", "configs/cnn_50.json"])
@pytest.mark.parametrize(
    "damage", [
        lambda text: text.encode("utf-16"), lambda text: text.encode("utf-16-be"),
        lambda text: text[:-2].encode(), lambda text: b"", lambda text: b"\xff" + text.encode(),
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_be_read_is_not_taken_for_a_missing_one(
    folder, tmp_path, damage, name
):
    path = folder / name
    path.write_bytes(damage(path.read_text()))
    with pytest.raises(FormatError, match=name):
        convert(folder, tmp_path / "model")


def test_tensors_of_another_size(folder, tmp_path):
    state = torch.load(folder / "token_embedder.pkl")
    state["projection.weight"] = state["projection.weight"][:, 1:]
    torch.save(state, folder / "token_embedder.pkl")
    with pytest.raises(FormatError, match=r"token_embedder\.pkl: .*`CNN_proj/W_proj`.*\(16, 16\)"):
        convert(folder, tmp_path / "model")
