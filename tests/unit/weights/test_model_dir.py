import errno
import json
import re
import shutil
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.bilm.softmax import AdaptiveSoftmax, FullSoftmax, SoftmaxConfig
from elmokit.errors import ConfigError, FormatError
from elmokit.files import temporary
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.weights import model_files
from elmokit.weights.mix_file import TrainedMixes, write_mixes
from elmokit.weights.model_dir import PretrainedBiLM, load_model

CONFIG = BiLMConfig(
    char_cnn=CharCNNConfig(embedding_dim=3, filters=((1, 4), (2, 5))),
    lstm=LSTMConfig(cell_dim=8, projection_dim=4),
)
VOCAB = WordVocab(["<S>", "</S>", "<UNK>", "the", "bank"])
WORD_CONFIG = replace(CONFIG, char_cnn=None, num_words=len(VOCAB))


@pytest.fixture
def directory(tmp_path):
    """A saved model with everything that a model can have."""
    model = PretrainedBiLM(
        CONFIG,
        word_vocab=VOCAB,
        softmax_config=SoftmaxConfig(kind="sampled", num_samples=2),
        tokenizer=TokenizerConfig(name="simple", version="1"),
        warm_text=("The bank .", "한국 은행"),
        training={"language": "en", "perplexity": 12.5},
    )
    model.save(tmp_path / "model")
    return tmp_path / "model"


def edit_config(directory, change):
    path = directory / "config.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return str(path)


class TestPretrainedBiLM:
    def test_encodes_characters_with_boundaries(self):
        model = PretrainedBiLM(CONFIG)
        ids = model.encode([["a", "b"], []])
        assert ids.dtype == torch.int64
        assert ids.shape == (2, 4, 50)
        expected = torch.from_numpy(model.char_vocab.encode([["a", "b"], []]))
        assert torch.equal(ids, expected)
        assert model.encode([["a", "b"], []], boundaries=False).shape == (2, 2, 50)

    def test_encodes_words_for_word_input(self):
        model = PretrainedBiLM(WORD_CONFIG, word_vocab=VOCAB)
        assert model.encode([["the", "river"], []]).tolist() == [[1, 4, 3, 2], [1, 2, 0, 0]]
        assert model.encode([["bank"]], boundaries=False).tolist() == [[5]]
        assert model.encode([[]], boundaries=False).shape == (1, 0)
        assert model.encode([]).shape == (0, 0)

    @pytest.mark.parametrize(("form", "word_id"), [("NFC", 4), ("none", 3)])
    def test_words_are_normalized_before_they_are_looked_up(self, form, word_id):
        vocab = WordVocab(["<S>", "</S>", "<UNK>", "강"])
        config = replace(
            WORD_CONFIG, num_words=len(vocab), char_vocab=CharVocabConfig(normalization=form)
        )
        model = PretrainedBiLM(config, word_vocab=vocab)
        decomposed = unicodedata.normalize("NFD", "강")
        assert model.encode([[decomposed]], boundaries=False).tolist() == [[word_id]]

    def test_encodes_words_for_the_token_layer(self):
        model = PretrainedBiLM(WORD_CONFIG, word_vocab=VOCAB)
        assert model.encode_words(["the", "river"]).tolist() == [4, 3]
        ids = PretrainedBiLM(CONFIG).encode_words(["the", "<S>"])
        assert ids.shape == (2, 50)
        assert ids[1, :3].tolist() == [259, 257, 260]

    def test_word_input_without_vocabulary_cannot_encode(self):
        with pytest.raises(ValueError, match=r"vocab='vocab\.txt'"):
            PretrainedBiLM(WORD_CONFIG).encode([["the"]])

    @pytest.mark.parametrize("config", [CONFIG, WORD_CONFIG])
    def test_strings_go_through_its_tokenizer(self, config):
        model = PretrainedBiLM(config, word_vocab=VOCAB, tokenizer=TokenizerConfig(name="simple"))
        assert model.tokenize("the “bank.") == ["the", '"', "bank", "."]
        as_words = model.encode([["the", "bank", "."], ["the"]])
        assert torch.equal(model.encode(["the bank.", ["the"]]), as_words)
        with pytest.raises(TypeError, match="one string"):
            model.encode("the bank.")

    def test_sizes_must_agree(self):
        with pytest.raises(ValueError, match=r" 5 .* 9 .*`num_words` .* None"):
            PretrainedBiLM(replace(WORD_CONFIG, num_words=9), word_vocab=VOCAB)
        with pytest.raises(ValueError, match=r" 5 .* None .*`num_words` .* 9\b"):
            PretrainedBiLM(CONFIG, word_vocab=VOCAB, num_words=9)
        with pytest.raises(ValueError, match=r"`word_vocab` .*`num_words`"):
            PretrainedBiLM(CONFIG, softmax_config=SoftmaxConfig())

    def test_reset_parameters_draws_the_softmax_too(self):
        model = PretrainedBiLM(CONFIG, num_words=7, softmax_config=SoftmaxConfig(kind="full"))
        assert isinstance(model.softmax, FullSoftmax)
        before = model.softmax.weight.clone()
        model.reset_parameters(torch.Generator().manual_seed(3))
        first = model.softmax.weight.clone()
        model.reset_parameters(torch.Generator().manual_seed(3))
        assert not torch.equal(before, first)
        assert torch.equal(first, model.softmax.weight)

    def test_counts_parameters_without_softmax_and_padding_row(self):
        sizes = [261 * 3, 3 * 4 + 4, 2 * 3 * 5 + 5, 2 * 2 * (9 * 9 + 9), 9 * 4 + 4]
        lstm = 4 * (32 * 8 + 32 + 8 * 4)
        model = PretrainedBiLM(CONFIG, num_words=7, softmax_config=SoftmaxConfig())
        assert model.num_parameters() == sum(sizes) + lstm
        assert PretrainedBiLM(WORD_CONFIG).num_parameters() == len(VOCAB) * 4 + lstm


class TestModelHash:
    def test_is_a_property_of_weights_and_numeric_settings(self):
        model = PretrainedBiLM(CONFIG)
        assert len(model.model_hash()) == 64
        assert int(model.model_hash(), 16)
        assert model.model_hash() == PretrainedBiLM(CONFIG).model_hash()
        assert model.model_hash() == PretrainedBiLM(replace(CONFIG, dropout=0.4)).model_hash()
        facts = PretrainedBiLM(CONFIG, word_vocab=VOCAB, training={"language": "en"})
        assert model.model_hash() == facts.model_hash()

    def test_changes_with_any_number(self):
        model = PretrainedBiLM(CONFIG)
        hashes = {model.model_hash()}
        unclipped = replace(CONFIG, lstm=replace(CONFIG.lstm, cell_clip=None))
        hashes.add(PretrainedBiLM(unclipped).model_hash())
        raw = replace(CONFIG, char_vocab=replace(CONFIG.char_vocab, normalization="none"))
        hashes.add(PretrainedBiLM(raw).model_hash())
        with torch.no_grad():
            model.backward_layers[1].bias[-1] += 1e-7
        hashes.add(model.model_hash())
        assert len(hashes) == 4

    def test_the_words_of_word_input_count(self):
        """Their rows are numbered by the vocabulary: with another one, words get other vectors."""
        swapped = WordVocab(["<S>", "</S>", "<UNK>", "bank", "the"])
        models = [PretrainedBiLM(WORD_CONFIG, word_vocab=one) for one in (VOCAB, swapped, None)]
        assert len({model.model_hash() for model in models}) == 3

    def test_whole_numbers_are_numbers(self, tmp_path):
        whole = replace(CONFIG, lstm=replace(CONFIG.lstm, cell_clip=3, projection_clip=3))
        model = PretrainedBiLM(whole)
        model.save(tmp_path / "model")
        assert model.model_hash() == load_model(tmp_path / "model").model_hash()
        assert model.model_hash() in (tmp_path / "model" / "README.md").read_text("utf-8")

    def test_the_fingerprint_knows_warm_text_and_order_of_the_vocabulary_too(self):
        swapped = WordVocab(["<S>", "</S>", "<UNK>", "bank", "the"])
        facts = (
            {"word_vocab": VOCAB}, {"word_vocab": swapped},
            {"word_vocab": VOCAB, "warm_text": ("the bank",)},
        )  # fmt: skip
        models = [PretrainedBiLM(CONFIG, **given) for given in facts]
        assert len({model.model_hash() for model in models}) == 1
        assert len({model.fingerprint() for model in models}) == 3


class TestSave:
    def test_everything_comes_back(self, directory):
        model = load_model(directory)
        assert model.word_vocab == VOCAB
        assert model.softmax_config == SoftmaxConfig(kind="sampled", num_samples=2)
        assert model.tokenizer == TokenizerConfig(name="simple", version="1")
        assert model.warm_text == ("The bank .", "한국 은행")
        assert model.training_metadata == {"language": "en", "perplexity": 12.5}
        assert not model.training
        assert all(parameter.requires_grad for parameter in model.parameters())

    def test_the_directory_holds_what_the_contract_says(self, directory):
        names = {path.name for path in directory.iterdir()}
        assert names == {"config.json", "model.safetensors", "vocab.txt", "README.md"}
        data = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        assert data["model_type"] == "elmokit"
        assert data["elmokit_version"]
        assert data["bilm"]["char_vocab"]["normalization"] == "plain-1"
        modes = {path.stat().st_mode & 0o777 for path in directory.iterdir()}
        assert len(modes) == 1, "readable by whoever may read the others"

    @pytest.mark.parametrize("place", [-1, -1000])
    def test_a_flipped_bit_in_the_weights_is_found(self, directory, place):
        path = directory / "model.safetensors"
        content = bytearray(path.read_bytes())
        content[place] ^= 1  # another number, as finite as the first
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"model\.safetensors: damaged.*SHA-256"):
            load_model(directory)

    def test_directories_of_earlier_versions_have_no_hash(self, directory):
        path = directory / "config.json"
        data = json.loads(path.read_text(encoding="utf-8"))
        assert len(data.pop("weights_sha256")) == len(data.pop("vocab_sha256")) == 64
        path.write_text(json.dumps(data), encoding="utf-8")
        assert load_model(directory).word_vocab == VOCAB

    def test_names_of_files_that_are_not_utf8_come_back(self, tmp_path):
        training = {"text": ["/corpus/\udce9t\udce9.txt"], "language": "\udcff", "눈": "é"}
        PretrainedBiLM(CONFIG, training=training, warm_text=("눈 .",)).save(tmp_path / "m")
        loaded = load_model(tmp_path / "m")
        assert loaded.training_metadata == training
        card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
        assert card == loaded.card()
        assert r"/corpus/\udce9t\udce9.txt" in card
        assert "- 눈: é" in card

    def test_an_adaptive_softmax_comes_back(self, tmp_path):
        config = SoftmaxConfig(kind="adaptive", cutoffs=(2,))
        model = PretrainedBiLM(CONFIG, num_words=9, softmax_config=config)
        model.save(tmp_path / "m")
        again = load_model(tmp_path / "m")
        assert isinstance(again.softmax, AdaptiveSoftmax)
        assert again.model_hash() == model.model_hash()

    @pytest.mark.parametrize("dtype", ["float16", "int8"])
    def test_a_smaller_format_changes_nothing_but_the_file(self, directory, tmp_path, dtype):
        model = load_model(directory)
        model.round_to(dtype)
        model.save(tmp_path / "small", dtype=dtype)
        loaded = load_model(tmp_path / "small")
        assert loaded.model_hash() == model.model_hash() != load_model(directory).model_hash()
        assert all(tensor.dtype == torch.float32 for tensor in loaded.state_dict().values())
        full, small = (
            (path / "model.safetensors").stat().st_size for path in (directory, tmp_path / "small")
        )
        tensors = model.state_dict().values()
        saved = sum(2 * tensor.numel() for tensor in tensors)
        if dtype == "int8":
            matrices = [tensor for tensor in tensors if tensor.dim() > 1]
            saved = sum(3 * tensor.numel() - 4 * len(tensor) for tensor in matrices)
        names = 80 * len(tensors) if dtype == "int8" else 100  # of the scales, in the header
        assert full - small == pytest.approx(saved, abs=names)

    def test_a_directory_of_a_newer_version_says_so(self, directory):
        path = directory / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        newer = {**config, "elmokit_version": "99.1.0", "storage_of_tomorrow": "int4"}
        path.write_text(json.dumps(newer), encoding="utf-8")
        with pytest.raises(ConfigError, match=r"(?s)storage_of_tomorrow.*99\.1\.0.*install that"):
            load_model(directory)

    def test_int8_without_its_scales_is_refused(self, directory, tmp_path):
        model = load_model(directory)
        model.round_to("int8")
        model.save(tmp_path / "m", dtype="int8")
        path = tmp_path / "m" / "model.safetensors"
        tensors = load_file(path)
        name = next(name for name in tensors if name.endswith(".scale"))
        del tensors[name]
        save_file(tensors, path)
        with pytest.raises(FormatError, match=f"(?s){re.escape(str(path))}.*{re.escape(name)}"):
            load_model(tmp_path / "m")

    def test_digits_are_not_dropped_unasked(self, directory, tmp_path):
        with pytest.raises(
            ValueError,
            match=r"`token_encoder\.char_embedding\.weight` .*float16.*round_to\('float16'\)",
        ):
            load_model(directory).save(tmp_path / "half", dtype="float16")
        assert not (tmp_path / "half").exists()

    def test_numbers_too_large_for_half_precision_are_refused(self, directory):
        model = load_model(directory)
        with torch.no_grad():
            next(model.parameters())[0] = 7e4
        with pytest.raises(ValueError, match=r"`token_encoder\.char_embedding.* too large"):
            model.round_to("float16")

    def test_a_model_without_its_softmax_can_be_saved(self, directory, tmp_path):
        model = load_model(directory)
        model.softmax = None
        model.save(tmp_path / "m")
        again = load_model(tmp_path / "m")
        assert again.softmax is None
        assert again.softmax_config is None

    def test_missing_parents_are_made_and_an_empty_directory_is_taken(self, tmp_path):
        (tmp_path / "a" / "b").mkdir(parents=True)
        PretrainedBiLM(CONFIG).save(tmp_path / "a" / "b")
        PretrainedBiLM(CONFIG).save(tmp_path / "c" / "d")
        assert load_model(tmp_path / "a" / "b").config == load_model(tmp_path / "c" / "d").config

    def test_what_is_no_model_directory_is_not_overwritten(self, tmp_path):
        (tmp_path / "thesis.txt").write_text("years of work")
        with pytest.raises(FileExistsError, match=r"thesis\.txt"):
            PretrainedBiLM(CONFIG).save(tmp_path)
        assert (tmp_path / "thesis.txt").read_text() == "years of work"

    def test_a_model_directory_with_other_files_in_it_is_not_overwritten(self, directory):
        (directory / "notes.txt").write_text("mine")
        with pytest.raises(FileExistsError, match=r"/model .*notes\.txt"):
            PretrainedBiLM(CONFIG).save(directory)
        assert (directory / "notes.txt").exists()

    def test_what_a_file_manager_left_is_no_file_of_others(self, directory):
        (directory / ".DS_Store").touch()
        load_model(directory).save(directory)
        assert not (directory / ".DS_Store").exists()

    def test_another_programs_model_is_not_overwritten(self, tmp_path):
        (tmp_path / "config.json").write_text('{"model_type": "bert"}')
        with pytest.raises(FileExistsError, match=rf"{tmp_path.name} .*'config\.json'"):
            PretrainedBiLM(CONFIG).save(tmp_path)

    def test_a_file_is_not_overwritten(self, tmp_path):
        (tmp_path / "m").write_text("x")
        with pytest.raises(FileExistsError, match="/m "):
            PretrainedBiLM(CONFIG).save(tmp_path / "m")

    def test_leftovers_of_a_killed_save_are_cleared(self, directory):
        for role in (f"{temporary._MACHINE}{'0' * 16}.partial", "previous"):
            left = directory.with_name(f".{directory.name}.{role}")
            left.mkdir(0o700)
            (left / "model.safetensors").write_text("half")
        PretrainedBiLM(CONFIG).save(directory)
        assert [path.name for path in directory.parent.iterdir()] == [directory.name]
        assert load_model(directory).word_vocab is None


class TestLoadErrors:
    def test_no_such_directory(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no model .*m'"):
            load_model(tmp_path / "m")

    def test_a_save_that_was_killed_between_two_renames_is_explained(self, directory):
        aside = directory.with_name(f".{directory.name}.previous")
        directory.rename(aside)
        with pytest.raises(FileNotFoundError, match="/model") as raised:
            load_model(directory)
        assert str(aside) in str(raised.value)

    def test_a_file_instead_of_the_directory(self, directory):
        with pytest.raises(FileNotFoundError, match=r"/model/config\.json "):
            load_model(directory / "config.json")

    def test_a_vocabulary_that_belongs_to_the_model_is_missed(self, directory):
        (directory / "vocab.txt").unlink()
        with pytest.raises(FormatError, match=r"/vocab\.txt .*config\.json"):
            load_model(directory)

    def test_a_model_without_vocabulary_misses_none(self, tmp_path):
        PretrainedBiLM(CONFIG).save(tmp_path / "m")
        assert json.loads((tmp_path / "m" / "config.json").read_text())["has_vocab"] is False
        assert load_model(tmp_path / "m").word_vocab is None

    @pytest.mark.parametrize("num_words", [-5, 0, 2**31, 2**62])
    def test_a_softmax_without_vocabulary_has_a_size(self, tmp_path, num_words):
        PretrainedBiLM(CONFIG, softmax_config=SoftmaxConfig(), num_words=9).save(tmp_path / "m")
        edit_config(tmp_path / "m", lambda data: data.update(num_words=num_words))
        with pytest.raises(ConfigError, match=rf"config\.json: `num_words`.* 1 to .*{num_words}"):
            load_model(tmp_path / "m")

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("bilm.lstm.cell_dim", 65_536), ("bilm.lstm.cell_dim", 10**18),
            ("bilm.lstm.num_layers", 10**9), ("bilm.lstm.num_layers", 100),
            ("bilm.lstm.num_layers", "2"), ("bilm.lstm.cell_clip", float("nan")),
            ("bilm.lstm.cell_clip", float("inf")), ("bilm.char_vocab.max_characters", 10**9),
            ("bilm.char_vocab.max_characters", 16.0), ("bilm.char_vocab.max_characters", "16"),
            ("bilm.char_cnn.num_highway", 10**8), ("bilm.char_cnn.num_highway", True),
            ("bilm.char_cnn.filters", [[1, 10**12]]), ("bilm.char_cnn.embedding_dim", 10**400),
            ("num_words", 2**40), ("num_words", 2**31 - 2), ("num_words", -5), ("warm_text", "x"),
        ],
    )  # fmt: skip
    def test_sizes_and_types_are_refused_before_memory_is_taken(self, directory, path, value):
        def edit(data):
            *parents, last = path.split(".")
            for parent in parents:
                data = data[parent]
            data[last] = value

        edit_config(directory, edit)
        with pytest.raises((ConfigError, FormatError), match=str(directory)):
            load_model(directory)

    def test_weights_that_are_not_finite(self, directory):
        weights = load_file(directory / "model.safetensors")
        name = next(iter(weights))
        weights[name].view(-1)[-1] = float("nan")
        save_file(weights, directory / "model.safetensors")
        with pytest.raises(FormatError, match=rf"safetensors.*`{name}`.*not finite"):
            load_model(directory)

    @pytest.mark.parametrize("dtype", ["int32", "float64"])
    def test_weights_of_another_type(self, directory, dtype):
        weights = load_file(directory / "model.safetensors")
        name = next(iter(weights))
        weights[name] = weights[name].to(getattr(torch, dtype))
        save_file(weights, directory / "model.safetensors")
        with pytest.raises(FormatError, match=rf"safetensors.*`{name}`.*F32"):
            load_model(directory)

    def test_an_older_directory_does_not_say_whether_it_had_one(self, directory):
        edit_config(directory, lambda data: data.pop("has_vocab"))
        assert load_model(directory).word_vocab == VOCAB
        (directory / "vocab.txt").unlink()
        assert load_model(directory).word_vocab is None

    def test_a_file_that_may_not_be_read_is_not_called_missing(self, directory, monkeypatch):
        path, opened = directory / "model.safetensors", Path.open

        def refuses(self, *arguments, **settings):
            if self == path:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return opened(self, *arguments, **settings)

        monkeypatch.setattr(Path, "open", refuses)
        with pytest.raises(PermissionError) as raised:
            load_model(directory)
        assert raised.value.filename == str(path)

    @pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
    def test_a_missing_file_is_named(self, directory, name):
        (directory / name).unlink()
        with pytest.raises(FormatError, match=f"/model.* {name}|/model/{name}"):
            load_model(directory)

    def test_a_directory_of_something_else_says_what_is_wanted(self, tmp_path):
        with pytest.raises(FormatError, match=r" config\.json.*elmokit pretrain.*: en, ko\.$"):
            load_model(tmp_path)

    def test_original_weights_are_recognized(self, tmp_path):
        (tmp_path / "elmo_options.json").write_text("{}")
        with pytest.raises(FormatError, match=r" config\.json.*elmokit convert .*read_bilm_tf"):
            load_model(tmp_path)

    def test_truncated_config(self, directory):
        path = directory / "config.json"
        path.write_text(path.read_text()[:300])
        with pytest.raises(FormatError, match=r"/config\.json: .*JSON"):
            load_model(directory)

    @pytest.mark.parametrize("found", ["bert", None])
    def test_unknown_model_type(self, directory, found):
        path = edit_config(directory, lambda data: data.update(model_type=found))
        with pytest.raises(FormatError, match=f"`model_type` .*{found!r}, .*'elmokit'") as raised:
            load_model(directory)
        assert path in str(raised.value)

    def test_config_that_is_no_table(self, directory):
        (directory / "config.json").write_text("[1, 2]")
        with pytest.raises(FormatError, match=r"/config\.json: .*JSON object, .* list"):
            load_model(directory)

    def test_unknown_key_suggests_the_nearest(self, directory):
        edit_config(directory, lambda data: data["bilm"]["lstm"].update(cell_dims=3))
        with pytest.raises(
            ConfigError, match=r"/config\.json: .*`bilm\.lstm\.cell_dims`.*`cell_dim`"
        ):
            load_model(directory)

    def test_impossible_value(self, directory):
        edit_config(directory, lambda data: data["bilm"]["lstm"].update(cell_clip=-1))
        with pytest.raises(ConfigError, match=r"/config\.json: `bilm\.lstm\.cell_clip`: .* -1\."):
            load_model(directory)

    def test_filters_wider_than_a_word(self, directory):
        edit_config(directory, lambda data: data["bilm"]["char_vocab"].update(max_characters=3))
        edit_config(directory, lambda data: data["bilm"]["char_cnn"].update(filters=[[9, 1]]))
        with pytest.raises(FormatError, match=r"/config\.json: .*width 9 .*max_characters=3"):
            load_model(directory)

    def test_truncated_vocabulary(self, directory):
        path = directory / "vocab.txt"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
        with pytest.raises(FormatError, match=r"vocab\.txt.* 4 .*config\.json.* 5"):
            load_model(directory)

    def test_vocabulary_in_another_order(self, directory):
        path = directory / "vocab.txt"
        *others, last_but_one, last = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join((*others, last, last_but_one)), encoding="utf-8")
        with pytest.raises(FormatError, match=r"vocab\.txt: damaged.*words.*Copy the whole"):
            load_model(directory)

    def test_vocabulary_without_specials(self, directory):
        (directory / "vocab.txt").write_text("a\nb\nc\nd\ne\n")
        with pytest.raises(FormatError, match=r"vocab\.txt.*<S>"):
            load_model(directory)

    def test_softmax_tensor_of_another_vocabulary(self, directory):
        edit_config(directory, lambda data: data.update(num_words=6, has_vocab=False))
        (directory / "vocab.txt").unlink()
        with pytest.raises(FormatError, match=r"`softmax\.\w+` .*\(5\b.*\(6\b"):
            load_model(directory)


class TestLoadedParameters:
    """What is loaded can be used and trained on."""

    @pytest.mark.parametrize("kind", ["sampled", "adaptive"])
    def test_they_are_the_saved_ones_on_the_cpu_and_trainable(self, tmp_path, kind):
        softmax = SoftmaxConfig(kind=kind, num_samples=2)
        model = PretrainedBiLM(CONFIG, word_vocab=VOCAB, softmax_config=softmax)
        model.save(tmp_path / "m")
        loaded = load_model(tmp_path / "m")
        assert loaded.model_hash() == model.model_hash()
        assert all(tensor.device.type == "cpu" for tensor in loaded.state_dict().values())
        assert all(parameter.requires_grad for parameter in loaded.parameters())


def test_packaged_models_are_loaded_by_name():
    assert load_model("ko").tokenizer.name == "korean"
    assert load_model().tokenizer.name == "simple"


def test_trained_mixtures_stay_with_the_model(directory, tmp_path):
    mixes = TrainedMixes(mix_weights=torch.tensor([[0.1, 0.2, 0.3]]), gammas=torch.tensor([2.0]))
    write_mixes(mixes, directory / model_files.MIXES_NAME)
    model = load_model(directory)
    model.round_to("int8")
    model.save(tmp_path / "rounded", dtype="int8")
    model.save(directory)
    for saved in (tmp_path / "rounded", directory):
        found = load_model(saved).mixes
        assert torch.equal(found.mix_weights, mixes.mix_weights)
        assert torch.equal(found.gammas, mixes.gammas)


def test_an_empty_working_directory_is_filled(directory, tmp_path, monkeypatch):
    """It may be the working directory of a shell, or a mount point."""
    target = tmp_path / "here"
    target.mkdir()
    monkeypatch.chdir(target)
    inode, moved = target.stat().st_ino, []
    move, iterdir = shutil.move, Path.iterdir

    def noting(source, to):
        moved.append(to.name)
        return move(source, to)

    monkeypatch.setattr(shutil, "move", noting)
    monkeypatch.setattr(Path, "iterdir", lambda folder: iter(sorted(iterdir(folder))))
    load_model(directory).save(target)
    assert target.stat().st_ino == inode
    assert moved == ["README.md", "model.safetensors", "vocab.txt", "config.json"]
    assert load_model(target).model_hash() == load_model(directory).model_hash()
