import json
import logging

import h5py
import numpy as np
import pytest
import torch

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.errors import FormatError
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.bilm_tf import format_losses, read_bilm_tf, write_bilm_tf
from elmokit.weights.model_dir import PretrainedBiLM, load_model

RAW = CharVocabConfig(normalization="none", truncation="byte")
CNN = CharCNNConfig(embedding_dim=3, filters=((1, 4), (2, 5)))
LSTM = LSTMConfig(cell_dim=8, projection_dim=4)
VOCAB = WordVocab(["<S>", "</S>", "<UNK>", "the", "bank"])


def character_model(**settings):
    return PretrainedBiLM(BiLMConfig(char_vocab=RAW, char_cnn=CNN, lstm=LSTM), **settings)


def word_model(**settings):
    config = BiLMConfig(char_vocab=RAW, char_cnn=None, num_words=len(VOCAB), lstm=LSTM)
    return PretrainedBiLM(config, **settings)


@pytest.fixture
def files(tmp_path):
    """The two files of a small character model, with a function to change datasets."""
    return written(character_model(), tmp_path)


def written(model, directory):
    paths = directory / "options.json", directory / "weights.hdf5"
    write_bilm_tf(model, *paths)
    return paths


def datasets(path):
    with h5py.File(path) as file:
        names = []
        file.visit(names.append)
        return {name: file[name][...] for name in names if isinstance(file[name], h5py.Dataset)}


def change(path, **replaced):
    with h5py.File(path, "a") as file:
        for name, array in replaced.items():
            if name in file:
                del file[name]
            if array is not None:
                file[name] = array


class TestRead:
    def test_words_are_encoded_as_the_original_does(self, files):
        model = read_bilm_tf(*files)
        assert model.config.char_vocab == RAW
        assert model.tokenizer == TokenizerConfig(name="whitespace")
        decomposed = "\u1112\u1161\u11ab"  # 한 in three parts: stays what it is, 9 bytes
        assert (model.encode([[decomposed]])[0, 1] < 260).sum() == 1 + 9
        long_word = "가" * 17  # with one byte before it, cut after 48 inside a character
        assert model.encode([["a" + long_word]])[0, 1, 49] == 260

    def test_261_and_262_characters_are_the_same(self, files):
        options, weights = files
        data = json.loads(options.read_text())
        hashes = set()
        for number in (261, 262, None):
            data["char_cnn"]["n_characters"] = number
            options.write_text(json.dumps(data))
            hashes.add(read_bilm_tf(options, weights).model_hash())
        assert len(hashes) == 1

    def test_bias_is_kept_as_stored(self, files):
        """Adding 1 to the forget gate and taking it off again would lose these bits."""
        name = "RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/B"
        tiny = np.full(32, 1e-9, np.float32)
        change(files[1], **{name: tiny})
        model = read_bilm_tf(*files)
        assert (model.forward_layers[1].bias.detach().numpy() == tiny).all()
        gates = model.forward_layers[1].gate_bias().detach().numpy().reshape(4, 8)
        np.testing.assert_allclose(gates[:, 0], [0, 1, 0, 0], atol=1e-6)

    def test_a_separate_softmax_file(self, tmp_path):
        model = character_model(word_vocab=VOCAB, softmax_config=SoftmaxConfig(kind="full"))
        options, weights, softmax = (tmp_path / name for name in ("o.json", "w.hdf5", "s.hdf5"))
        write_bilm_tf(model, options, weights, softmax=softmax)
        assert sorted(datasets(softmax)) == ["softmax/W", "softmax/b"]
        assert not [name for name in datasets(weights) if name.startswith("softmax")]

        VOCAB.write(tmp_path / "vocab.txt")
        assert read_bilm_tf(options, weights).softmax is None
        again = read_bilm_tf(options, weights, vocab=tmp_path / "vocab.txt", softmax=softmax)
        assert again.model_hash() == model.model_hash()
        hidden, targets = torch.randn(3, 4), torch.tensor([1, 3, 5])
        assert torch.equal(again.softmax.nll(hidden, targets), model.softmax.nll(hidden, targets))

    def test_softmax_in_the_weights_needs_no_vocabulary(self, tmp_path):
        model = character_model(num_words=5, softmax_config=SoftmaxConfig(kind="full"))
        again = read_bilm_tf(*written(model, tmp_path))
        assert again.softmax.num_words == 5
        assert again.word_vocab is None

    def test_what_is_no_part_of_a_bilm_is_passed_over_and_logged(self, files, caplog):
        change(files[1], **{"adagrad_accumulator/char_embed": np.ones(3), "global_step": 7})
        with caplog.at_level(logging.INFO):
            read_bilm_tf(*files)
        assert "passed over 2 datasets" in caplog.text

    def test_double_precision_is_taken_as_single_and_said(self, files, caplog):
        bias = datasets(files[1])["CNN/b_cnn_0"].astype(np.float64)
        change(files[1], **{"CNN/b_cnn_0": bias})
        read_bilm_tf(*files)
        assert "`CNN/b_cnn_0` is float64" in caplog.text


class TestReadErrors:
    def test_missing_files(self, files, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"none\.hdf5"):
            read_bilm_tf(files[0], tmp_path / "none.hdf5")
        with pytest.raises(FileNotFoundError, match=r"none\.json"):
            read_bilm_tf(tmp_path / "none.json", files[1])
        with pytest.raises(FileNotFoundError, match=r"none\.softmax"):
            read_bilm_tf(*files, softmax=tmp_path / "none.softmax")

    def test_a_file_of_another_kind(self, files):
        files[1].write_text("<html>Not found</html>")
        with pytest.raises(FormatError, match=r"HDF5.*`char_embed`"):
            read_bilm_tf(*files)

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("char_embed", ""),
            ("CNN/W_cnn_1", "(1, 2, 3, 5)"),
            ("CNN/b_cnn_0", "(4,)"),
            ("CNN_high_1/W_carry", "(9, 9)"),
            ("CNN_high_0/b_transform", "(9,)"),
            ("CNN_proj/W_proj", "(9, 4)"),
            ("CNN_proj/b_proj", "(4,)"),
            ("RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/W_0", "(8, 32)"),
            ("RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/B", "(32,)"),
            ("RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0", "(8, 4)"),
        ],
    )
    def test_every_dataset_is_named_when_missing_or_misshapen(self, files, name, expected):
        change(files[1], **{name: None})
        with pytest.raises(FormatError, match=r"/weights\.hdf5: ") as raised:
            read_bilm_tf(*files)
        assert f"`{name}`" in str(raised.value)
        assert expected in str(raised.value)

        change(files[1], **{name: np.zeros((2, 7), np.float32)})
        with pytest.raises(FormatError, match=r"/weights\.hdf5: .*\(2, 7\)") as raised:
            read_bilm_tf(*files)
        assert f"`{name}`" in str(raised.value)
        assert expected in str(raised.value)

    def test_integers_are_no_weights(self, files):
        change(files[1], **{"CNN/b_cnn_0": np.zeros(4, np.int64)})
        with pytest.raises(FormatError, match=r"`CNN/b_cnn_0`.*int64.*float32"):
            read_bilm_tf(*files)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_weights_that_are_not_finite(self, files, value):
        change(files[1], **{"CNN/b_cnn_0": np.full(4, value, np.float32)})
        with pytest.raises(FormatError, match=r"`CNN/b_cnn_0`.*not finite"):
            read_bilm_tf(*files)

    def test_weights_in_another_file_are_not_read(self, files):
        (files[1].parent / "secret").write_bytes(b"x" * 16)
        with h5py.File(files[1], "a") as file:
            del file["CNN/b_cnn_0"]
            external = [(str(files[1].parent / "secret"), 0, 16)]
            file.create_dataset("CNN/b_cnn_0", (4,), "f4", external=external)
        with pytest.raises(FormatError, match=r"`CNN/b_cnn_0`.*another file"):
            read_bilm_tf(*files)

    def test_sizes_are_compared_with_the_file_before_memory_is_taken(self, files):
        data = json.loads(files[0].read_text())
        data["lstm"] |= {"dim": 65536, "projection_dim": 65536}
        files[0].write_text(json.dumps(data))
        with pytest.raises(FormatError, match=r"RNN_0|CNN_proj"):
            read_bilm_tf(*files)

    def test_a_group_in_place_of_a_dataset(self, files):
        change(files[1], **{"CNN/b_cnn_0": None, "CNN/b_cnn_0/x": np.zeros(4, np.float32)})
        with pytest.raises(FormatError, match=r"`CNN/b_cnn_0` .*\(4,\)"):
            read_bilm_tf(*files)

    @pytest.mark.parametrize(
        "name", ["CNN_high_2/W_carry", "RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/B", "CNN/b_cnn_2"]
    )
    def test_layers_that_the_options_do_not_have(self, files, name):
        change(files[1], **{name: np.zeros(4, np.float32)})
        with pytest.raises(FormatError, match=rf"`{name}`"):
            read_bilm_tf(*files)

    def test_a_unidirectional_model(self, files):
        with h5py.File(files[1], "a") as file:
            del file["RNN_1"]
        with pytest.raises(FormatError, match=r"`RNN_1/.*\(8, 32\)"):
            read_bilm_tf(*files)
        with h5py.File(files[1], "a") as file:
            del file["RNN_0"]
            file["rnn/multi_rnn_cell/cell_0/lstm_cell/kernel"] = np.zeros((8, 32), np.float32)
        with pytest.raises(FormatError, match=r"`RNN_0/.*\(8, 32\)"):
            read_bilm_tf(*files)

    def test_word_options_with_character_weights(self, files):
        data = json.loads(files[0].read_text())
        del data["char_cnn"]
        files[0].write_text(json.dumps(data))
        with pytest.raises(
            FormatError, match=r"/weights\.hdf5: .*`embedding`.*/options\.json .*`char_cnn`"
        ):
            read_bilm_tf(*files)

    def test_character_options_with_word_weights(self, files, tmp_path):
        (tmp_path / "words").mkdir()
        _, weights = written(word_model(), tmp_path / "words")
        with pytest.raises(FormatError, match=r"/words/weights\.hdf5: .*`char_embed`"):
            read_bilm_tf(files[0], weights)

    def test_word_weights_without_embedding(self, tmp_path):
        options, weights = written(word_model(), tmp_path)
        change(weights, embedding=None)
        with pytest.raises(FormatError, match=r"`embedding`.*missing"):
            read_bilm_tf(options, weights)
        change(weights, embedding=np.zeros(5, np.float32))
        with pytest.raises(FormatError, match=r"`embedding`.*\(5,\)"):
            read_bilm_tf(options, weights)

    def test_a_vocabulary_of_another_model(self, tmp_path):
        model = character_model(num_words=6, softmax_config=SoftmaxConfig(kind="full"))
        paths = written(model, tmp_path)
        VOCAB.write(tmp_path / "vocab.txt")
        with pytest.raises(FormatError, match=r"vocab\.txt.* 5 .*softmax.* 6 "):
            read_bilm_tf(*paths, vocab=tmp_path / "vocab.txt")

    def test_half_a_softmax(self, tmp_path):
        model = character_model(num_words=6, softmax_config=SoftmaxConfig(kind="full"))
        paths = written(model, tmp_path)
        change(paths[1], **{"softmax/W": None})
        with pytest.raises(FormatError, match=r"`softmax/W` .*missing"):
            read_bilm_tf(*paths)

    def test_a_softmax_file_without_softmax(self, files):
        with pytest.raises(FormatError, match=r"/weights\.hdf5: .*`softmax/W` "):
            read_bilm_tf(*files, softmax=files[1])


class TestWrite:
    def test_a_fresh_model_has_the_layout_of_the_released_ones(self, tmp_path):
        options, weights = written(character_model(), tmp_path)
        arrays = datasets(weights)
        assert arrays["char_embed"].shape == (261, 3)
        assert arrays["CNN/W_cnn_1"].shape == (1, 2, 3, 5)
        assert len(arrays) == 1 + 2 * 2 + 2 * 4 + 2 + 2 * 2 * 3
        assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}
        with h5py.File(weights) as file:
            assert file["char_embed"].compression is None
            assert file["char_embed"].chunks is None
            assert not file["char_embed"].attrs
        data = json.loads(options.read_text())
        assert data["char_cnn"]["n_characters"] == 262
        assert data["char_cnn"]["max_characters_per_token"] == 50
        assert data["lstm"]["use_skip_connections"] is True

    def test_adaptive_softmax_is_refused(self, tmp_path):
        softmax = SoftmaxConfig(kind="adaptive", cutoffs=(2,))
        model = character_model(word_vocab=VOCAB, softmax_config=softmax)
        with pytest.raises(ValueError, match=r"adaptive.*model\.softmax = None"):
            written(model, tmp_path)
        assert not list(tmp_path.iterdir())
        model.softmax = None
        assert read_bilm_tf(*written(model, tmp_path)).softmax is None

    def test_a_softmax_file_for_a_model_without_one(self, tmp_path):
        with pytest.raises(ValueError, match=r"`softmax` .*/s'.*model\.softmax"):
            write_bilm_tf(character_model(), tmp_path / "o", tmp_path / "w", softmax=tmp_path / "s")

    def test_what_is_lost_is_logged(self, tmp_path, caplog):
        config = BiLMConfig(char_cnn=CNN, lstm=LSTM)
        model = PretrainedBiLM(
            config, tokenizer=TokenizerConfig(name="korean", version="1"), warm_text=("a",)
        )
        written(model, tmp_path)
        for part in ("normalization='plain-1'", "truncation='character'", "'korean'", "warm-up"):
            assert part in caplog.text
        assert {record.levelname for record in caplog.records} == {"WARNING"}
        assert len(format_losses(model)) == 4

    def test_nothing_is_logged_where_nothing_is_lost(self, tmp_path, caplog):
        written(character_model(), tmp_path)
        written(word_model(), tmp_path)
        assert not caplog.records

    def test_options_that_are_not_unicode_come_back(self, files, tmp_path):
        options, weights = files
        data = json.loads(options.read_text()) | {"corpus": "\udce9t\udce9", "눈": "é"}
        options.write_text(json.dumps(data))
        model = read_bilm_tf(options, weights)
        model.save(tmp_path / "model")
        (tmp_path / "again").mkdir()
        again, _ = written(load_model(tmp_path / "model"), tmp_path / "again")
        assert json.loads(again.read_bytes()) == data

    def test_folders_are_made(self, tmp_path):
        paths = tmp_path / "a" / "o.json", tmp_path / "b" / "w.hdf5"
        write_bilm_tf(character_model(), *paths)
        assert read_bilm_tf(*paths).config.lstm == LSTM
