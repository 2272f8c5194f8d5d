import json
import re
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.errors import ConfigError, FormatError
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.model_dir import PretrainedBiLM, load_model
from elmokit.weights.stored_bilm import read_bilm

from ...builders.embedding_models import toy_model

CONFIG = toy_model().config
VOCAB = WordVocab(["<S>", "</S>", "<UNK>", "the", "bank"])


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


def edit(directory, key, value):
    """Set a dotted key of config.json."""
    path = directory / "config.json"
    data = table = json.loads(path.read_text())
    *parents, last = key.split(".")
    for parent in parents:
        table = table[parent]
    table[last] = value
    path.write_text(json.dumps(data))


def test_the_hash_changes_with_any_number_and_the_fingerprint_with_words_and_their_order_too():
    unclipped = replace(CONFIG, lstm=replace(CONFIG.lstm, cell_clip=None))
    raw = replace(CONFIG, char_vocab=replace(CONFIG.char_vocab, normalization="none"))
    models = [PretrainedBiLM(config) for config in (CONFIG, unclipped, raw, CONFIG)]
    with torch.no_grad():
        models[-1].backward_layers[1].bias[-1] += 1e-7
    assert len({model.model_hash() for model in models}) == 4
    swapped = WordVocab(["<S>", "</S>", "<UNK>", "bank", "the"])
    facts = (
        {"word_vocab": VOCAB}, {"word_vocab": swapped},
        {"word_vocab": VOCAB, "warm_text": ("the bank",)},
    )  # fmt: skip
    models = [PretrainedBiLM(CONFIG, **given) for given in facts]
    assert len({model.model_hash() for model in models}) == 1
    assert len({model.fingerprint() for model in models}) == 3


def test_how_it_was_made_comes_back(directory):
    model = load_model(directory)
    assert model.tokenizer == TokenizerConfig(name="simple", version="1")
    assert model.warm_text == ("The bank .", "한국 은행")
    assert model.training_metadata == {"language": "en", "perplexity": 12.5}
    assert not model.training
    assert all(parameter.requires_grad for parameter in model.parameters())


def flip_last_bit(directory):
    path = directory / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # another number, as finite as the first
    path.write_bytes(content)


def put_nan(directory):
    tensors = load_file(directory / "model.safetensors")
    tensors["softmax.bias"][-1] = torch.nan
    save_file(tensors, directory / "model.safetensors")


def change_words(directory, words):
    (directory / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: (d / "config.json").unlink(), r"config\.json.*elmokit pretrain.*en, ko"),
        (lambda d: (d / "vocab.txt").unlink(), r"/vocab\.txt .*config\.json"),
        (lambda d: edit(d, "model_type", "bert"), r"config\.json.*'bert'.*'elmokit'"),
        (lambda d: (d / "model.safetensors").unlink(), r"model\.safetensors"),
        (flip_last_bit, r"safetensors: damaged.*SHA-256"),
        (put_nan, r"safetensors.*SHA-256"),
        (lambda d: change_words(d, [*VOCAB.words[:3], "bank", "the"]), r"vocab\.txt: damaged"),
        (lambda d: change_words(d, "abcde"), r"vocab\.txt.*<S>"),
        (lambda d: edit(d, "int4", 1), r"`int4`"),
    ],
)
def test_damage_is_named(directory, change, message):
    change(directory)
    with pytest.raises((ConfigError, FormatError), match=message):
        load_model(directory)


@pytest.mark.parametrize(
    ("name", "content"),
    [("thesis.txt", "years of work"), ("config.json", '{"model_type": "bert"}')],
)
def test_what_is_no_model_directory_is_not_overwritten(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    for target in (tmp_path, tmp_path / name):
        with pytest.raises((FileExistsError, NotADirectoryError), match=re.escape(name)):
            PretrainedBiLM(CONFIG).save(target)
    assert (tmp_path / name).read_text() == content


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("bilm.lstm.cell_dim", 65_536), ("bilm.lstm.num_layers", 100),
        ("bilm.lstm.num_layers", "2"), ("bilm.lstm.cell_clip", -1),
        ("bilm.char_vocab.max_characters", 10**9), ("bilm.char_cnn.num_highway", True),
        ("bilm.char_cnn.filters", [[1, 10**12]]), ("bilm.char_cnn.embedding_dim", 10**400),
        ("num_words", 2**31 - 2), ("num_words", -5), ("warm_text", "x"),
    ],
)  # fmt: skip
def test_sizes_and_types_are_refused_before_memory_is_taken(directory, path, value):
    edit(directory, path, value)
    with pytest.raises((ConfigError, FormatError), match=str(directory)):
        load_model(directory)


def test_a_stated_hash_is_taken_only_while_all_that_it_depends_on_is_as_it_was(directory):
    data = json.loads((directory / "config.json").read_text("utf-8"))
    expected = load_model(directory).model_hash()  # computed
    assert read_bilm(directory).model_hash() == data["model_hash"] == expected
    edit(directory, "model_hash", "stated")
    assert read_bilm(directory).model_hash() == "stated"
    assert read_bilm(directory).encoder().model_hash() != "stated"
    assert read_bilm(directory).rounded_to("int8").model_hash() != "stated"
    edit(directory, "bilm.char_vocab.truncation", "byte")
    assert read_bilm(directory).model_hash() not in ("stated", expected)
