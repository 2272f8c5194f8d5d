"""elmokit models through transformers' own loaders equal `Embedder`."""

import os
import shutil
import subprocess

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.text.tokenizers.registry import TokenizerConfig

from ...builders.command_line import start_python
from ...builders.embedding_models import toy_model
from ...builders.training_models import lexicon_model

transformers = pytest.importorskip("transformers", reason="extra `transformers` is not installed")

from elmokit.integrations.transformers import ElmoConfig, ElmoModel, ElmoTokenizer  # noqa: E402

TEXTS = ["I sat by the bank of the river.", "배 를 타고 갔다", "", "a"]


def model_of(*, words):
    return toy_model(words=words, tokenizer=TokenizerConfig(name="simple", version="1"))


def save(model, folder):
    ElmoModel.from_elmokit(model).save_pretrained(folder)
    ElmoTokenizer.from_elmokit(model).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=[False, True], ids=["characters", "words"])
def model(request):
    return model_of(words=request.param)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    return save(model, tmp_path_factory.mktemp("saved"))


def test_what_auto_classes_load_equals_embedder(model, folder):
    loaded = transformers.AutoModel.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert (type(loaded), type(tokenizer)) == (ElmoModel, ElmoTokenizer)
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        out = loaded(**batch, output_hidden_states=True)
    for row, vectors in enumerate(Embedder(model).embed(TEXTS)):
        num_words = vectors.shape[1]
        found = torch.stack(out.hidden_states)[:, row, 1 : num_words + 1]
        assert np.abs(found.numpy() - vectors).max(initial=0) < 1e-6
        assert int(batch["attention_mask"][row].sum()) == num_words + 2
        assert not out.last_hidden_state[row, num_words + 2 :].any()
    assert torch.equal(out.last_hidden_state, out.hidden_states[-1])
    features = transformers.pipeline("feature-extraction", model=str(folder))(TEXTS[0])
    (expected,) = Embedder(model).embed(TEXTS[:1], layers="top")
    assert np.abs(np.array(features)[0, 1:-1] - expected).max() < 1e-6


def test_without_our_import_a_folder_loads_only_if_its_code_is_trusted(tmp_path):
    """In another process, which saves it again; the second folder is as good as the first."""
    models = {name: model_of(words=name == "words") for name in ("characters", "words")}
    folders = {name: str(save(model, tmp_path / name)) for name, model in models.items()}
    program = f"""
import sys
import torch
import transformers
for name, folder in {folders!r}.items():
    try:
        transformers.AutoModel.from_pretrained(folder, trust_remote_code=False)
    except ValueError as error:
        assert "trust_remote_code" in str(error), error
    else:
        assert "elmokit" in sys.modules, "it loaded"  # since the first folder was trusted
    for source in (folder, f"{{folder}}-again"):
        options = dict(trust_remote_code=True)
        model = transformers.AutoModel.from_pretrained(source, **options)
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
        model.save_pretrained(f"{{folder}}-again")
        tokenizer.save_pretrained(f"{{folder}}-again")
    batch = tokenizer({TEXTS!r}, padding=True, return_tensors="pt")
    with torch.no_grad():
        torch.save(model(**batch).last_hidden_state, f"{{folder}}.pt")
"""
    environment = {"HF_MODULES_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    process = start_python(program, env={**os.environ, **environment}, stderr=subprocess.PIPE)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    for name, model in models.items():
        files = {path.name for path in (tmp_path / name).iterdir()}
        again = tmp_path / f"{name}-again"
        assert {path.name for path in again.iterdir()} == files
        for file in files - {"tokenizer_config.json"}:  # which may say by what it was loaded
            assert (again / file).read_bytes() == (tmp_path / name / file).read_bytes(), file
        top = torch.load(tmp_path / f"{name}.pt")
        for row, vectors in enumerate(Embedder(model).embed(TEXTS, layers="top")):
            assert np.abs(top[row, 1 : len(vectors) + 1].numpy() - vectors).max(initial=0) < 1e-6


@pytest.mark.parametrize("options", [{"padding": True}, {"truncation": True, "max_length": 4}])
def test_words_are_tokens_between_boundaries(model, options):
    tokenizer = ElmoTokenizer.from_elmokit(model)
    begin, end = tokenizer([[]], is_split_into_words=True)["input_ids"][0]
    sentences = [["the", "bank", "of"], ["river"]]
    rows = tokenizer(sentences, is_split_into_words=True, **options)["input_ids"]
    at_once = tokenizer("the bank", add_special_tokens=False)["input_ids"]
    assert rows[0] == [begin, *at_once, *([] if "truncation" in options else rows[0][3:4]), end]
    assert rows[1][0] == begin
    assert rows[1][2] == end


def test_masks_of_boundaries_truncation_on_the_left_and_padding_of_one_sentence(model):
    tokenizer = ElmoTokenizer.from_elmokit(model)
    ids = tokenizer("the bank of")["input_ids"]
    for given, is_whole in ((ids, True), (ids[1:-1], False)):
        mask = tokenizer.get_special_tokens_mask(given, already_has_special_tokens=is_whole)
        assert mask == [1, 0, 0, 0, 1]
    if isinstance(ids[0], list):
        with pytest.raises(ValueError, match="batch"):
            tokenizer.pad({"input_ids": ids}, padding="max_length", max_length=8)
    tokenizer.truncation_side = "left"
    cut = tokenizer("the bank of", truncation=True, max_length=4)["input_ids"]
    assert cut == [ids[0], *ids[2:]]


def test_a_missing_weight_is_an_error(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "damaged")
    path = tmp_path / "damaged/model.safetensors"
    weights = load_file(path)
    del weights["bilm.forward_layers.0.recurrent_weight"]
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(FormatError, match=r"`bilm\.forward_layers\.0\.recurrent_weight`"):
        transformers.AutoModel.from_pretrained(tmp_path / "damaged")


def test_a_collator_pads_what_was_tokenized_one_by_one(model):
    tokenizer = ElmoTokenizer.from_elmokit(model)
    collate = transformers.DataCollatorForTokenClassification(tokenizer)
    examples = [{**tokenizer(text), "labels": [0] * len(tokenizer(text)["input_ids"])}
                for text in TEXTS]  # fmt: skip
    batch = collate(examples)
    at_once = tokenizer(TEXTS, padding=True, return_tensors="pt")
    assert torch.equal(batch["input_ids"], at_once["input_ids"])
    assert torch.equal(batch["labels"] == -100, at_once["attention_mask"] == 0)


def test_bad_input_is_refused(model):
    elmo, tokenizer = ElmoModel.from_elmokit(model), ElmoTokenizer.from_elmokit(model)
    batch = tokenizer(TEXTS, padding=True, padding_side="left", return_tensors="pt")
    holes = dict(tokenizer(TEXTS, padding=True, return_tensors="pt"))
    holes["attention_mask"][0, 2] = 0
    for inputs in (batch, holes):
        with pytest.raises(ValueError, match="Padding"), torch.no_grad():
            elmo(**inputs)
    for arguments in (("a", "b"), ("a\0b",)):
        with pytest.raises(ValueError, match=r"text_pair|NUL"):
            tokenizer(*arguments)
    for option in ("return_offsets_mapping", "return_special_tokens_mask", "return_length"):
        with pytest.raises(ValueError, match=option):
            tokenizer("a b", **{option: True})
    with pytest.raises(ValueError, match=r"`bilm`.*lstmm"):
        ElmoConfig(bilm={"lstmm": {}})
    with pytest.raises(ValueError, match="ELMoForManyLangs"):
        ElmoTokenizer.from_elmokit(lexicon_model())
