import pytest
import torch

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.errors import FormatError
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.weights import convert as convert_module
from elmokit.weights.bilm_tf import write_bilm_tf
from elmokit.weights.convert import OriginalFiles, convert, find_original
from elmokit.weights.model_dir import PretrainedBiLM, load_model

VOCAB = WordVocab(["<S>", "</S>", "<UNK>", "the", "bank"])
LSTM = LSTMConfig(cell_dim=8, projection_dim=4)


def build(*, words=False, raw=True, **settings):
    config = BiLMConfig(
        char_vocab=CharVocabConfig(normalization="none", truncation="byte")
        if raw
        else CharVocabConfig(),
        char_cnn=None if words else CharCNNConfig(embedding_dim=3, filters=((1, 4), (2, 5))),
        num_words=len(VOCAB) if words else None,
        lstm=LSTM,
    )
    return PretrainedBiLM(config, **settings)


@pytest.fixture
def original(tmp_path):
    """A folder with the original's files, a vocabulary and a softmax."""
    folder = tmp_path / "original"
    model = build(word_vocab=VOCAB, softmax_config=SoftmaxConfig(kind="full"))
    write_bilm_tf(model, folder / "options.json", folder / "weights.hdf5")
    VOCAB.write(folder / "vocab.txt")
    return folder


def test_there_and_back(original, tmp_path):
    there = convert(original, tmp_path / "model")
    back = convert(tmp_path / "model", tmp_path / "again")

    assert there.destination_format == "model directory"
    assert back.destination_format == "options.json + HDF5"
    for report in (there, back):
        assert report.same_bits
        assert report.max_difference == 0
        assert report.num_tokens > 20
        assert (report.vocabulary, report.softmax) == (5, True)
        assert report.num_parameters == build().num_parameters()
        assert report.losses == ()
    assert there.model_hash == back.model_hash == load_model(tmp_path / "model").model_hash()
    for name in ("options.json", "weights.hdf5", "vocab.txt"):
        assert (tmp_path / "again" / name).read_bytes() == (original / name).read_bytes()


def test_word_input_without_vocabulary(tmp_path):
    write_bilm_tf(build(words=True), tmp_path / "options.json", tmp_path / "weights.hdf5")
    report = convert(tmp_path, tmp_path / "model")
    assert report.vocabulary is None
    assert report.num_tokens > 20
    assert report.max_difference == 0


def test_files_of_any_name_and_place(original, tmp_path):
    files = OriginalFiles(tmp_path / "o.json", tmp_path / "elmo.model")
    (original / "options.json").rename(files.options)
    (original / "weights.hdf5").rename(files.weights)
    report = convert(files, tmp_path / "model", vocab=original / "vocab.txt")
    assert report.vocabulary == 5
    convert(tmp_path / "model", tmp_path / "out", options="a.json", weights="b.h5", softmax="s.h5")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"a.json", "b.h5", "s.h5", "vocab.txt"}


def test_what_gets_lost_is_reported(tmp_path):
    build(raw=False).save(tmp_path / "model")
    report = convert(tmp_path / "model", tmp_path / "out")
    assert len(report.losses) == 2
    assert "plain-1" in report.losses[0]


def test_a_difference_is_not_hidden(original, tmp_path, monkeypatch):
    """The report is measured, not assumed."""

    def damaged(path):
        model = load_model(path)
        with torch.no_grad():
            model.forward_layers[0].bias += 0.5
        return model

    monkeypatch.setattr(convert_module, "load_model", damaged)
    report = convert(original, tmp_path / "model")
    assert not report.same_bits
    assert report.max_difference > 1e-3


def test_a_vocabulary_for_a_model_directory_is_refused(tmp_path):
    build().save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"/model .*vocab"):
        convert(tmp_path / "model", tmp_path / "out", vocab=tmp_path / "vocab.txt")


class TestFindOriginal:
    def test_names_of_the_released_files(self, tmp_path):
        stem = "elmo_2x1024_128_2048cnn_1xhighway_"
        for name in ("options.json", "weights.hdf5", "softmax_weights.hdf5"):
            (tmp_path / (stem + name)).touch()
        files = find_original(tmp_path)
        assert files.options.name == stem + "options.json"
        assert files.weights.name == stem + "weights.hdf5"

    def test_several_ask_for_a_choice(self, tmp_path):
        for name in ("a_options.json", "b_options.json", "weights.hdf5"):
            (tmp_path / name).touch()
        with pytest.raises(FileNotFoundError, match=r"a_options\.json, b_options\.json.*--options"):
            find_original(tmp_path)
        assert find_original(tmp_path, options="a_options.json").weights.name == "weights.hdf5"

    def test_none_says_what_was_looked_for(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"config\.json.*options\.json"):
            find_original(tmp_path)

    def test_a_file_is_no_folder(self, tmp_path):
        (tmp_path / "f").touch()
        with pytest.raises(FormatError, match=r"/f .*\*options\.json"):
            find_original(tmp_path / "f")
