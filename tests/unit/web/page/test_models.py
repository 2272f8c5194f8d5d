"""Names of models, and the files that are made of them."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load

import elmokit
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.web.page.models import STATIC, language_of, pack_name, prepared_layers

from ....builders.training_models import toy_model


def test_prepared_layers_are_those_of_the_embedder(tmp_path):
    model = toy_model().stored()
    path = tmp_path / "prepared.safetensors"
    path.write_bytes(prepared_layers(model))
    tensors = load(path.read_bytes())
    entries = json.loads((STATIC / "packs/senses.en.json").read_bytes())["entries"]
    sentences = [sentence["words"] for entry in entries for sentence in entry["sentences"]]
    words = [word for sentence in sentences for word in sentence]
    expected = np.concatenate(elmokit.Embedder(model).embed(sentences), axis=1)  # (L, N, 2D)
    num_layers, count, width = expected.shape
    static, context = (tensors[n] * tensors[f"{n}.scale"][:, None] for n in ("static", "context"))
    context = context.reshape(count, num_layers - 1, width).transpose(1, 0, 2)
    assert cosines(context, expected[1:]).min() > 0.9995
    order = list(dict.fromkeys(words))
    static = static[[order.index(word) for word in words]]
    assert cosines(static, expected[0, :, : width // 2]).min() > 0.9995
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"model": model.model_hash()}


def cosines(a, b):
    norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return (a * b).sum(axis=-1) / norms


@pytest.mark.parametrize(
    ("stated", "tokenizer", "language", "pack"),
    [
        (None, "whitespace", None, "en"), ("ko", "whitespace", "ko", "ko"),
        ("fi", "korean", "fi", "en"),  # what the model states counts
        (None, "korean", "ko", "ko"), ("ko-KR", "korean", "ko", "ko"),
    ],
)  # fmt: skip
def test_a_model_gets_the_sentences_of_its_language(stated, tokenizer, language, pack):
    model = toy_model(tokenizer=TokenizerConfig(name=tokenizer)).stored()
    model.training_metadata["language"] = stated
    assert (language_of(model), pack_name(model)) == (language, f"packs/senses.{pack}.json")
