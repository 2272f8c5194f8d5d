import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load

import elmokit
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.web.page.made_files import STATIC, language_of, pack_name, prepared_layers

from ....builders.training_models import toy_model


def test_prepared_layers_are_those_of_the_embedder(tmp_path):
    model = toy_model()
    path = tmp_path / "prepared.safetensors"
    path.write_bytes(prepared_layers(model))
    tensors = load(path.read_bytes())
    entries = json.loads((STATIC / "packs/senses.en.json").read_bytes())["entries"]
    sentences = [one["words"] for entry in entries for one in entry["sentences"]]
    words = [word for sentence in sentences for word in sentence]
    expected = np.concatenate(elmokit.Embedder(model).embed(sentences), axis=1)  # (L, N, 2D)
    num_layers, count, width = expected.shape
    scaled = {
        name: tensors[name] * tensors[f"{name}.scale"][:, None] for name in ("static", "context")
    }
    context = scaled["context"].reshape(count, num_layers - 1, width).transpose(1, 0, 2)
    assert _smallest_cosine(context, expected[1:]) > 0.9995
    order = list(dict.fromkeys(words))
    static = scaled["static"][[order.index(word) for word in words]]
    assert _smallest_cosine(static, expected[0, :, : width // 2]) > 0.9995
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"model": model.model_hash()}


def _smallest_cosine(a, b):
    norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return float(((a * b).sum(axis=-1) / norms).min())


@pytest.mark.parametrize(
    ("stated", "tokenizer", "language", "pack"),
    [
        (None, "whitespace", None, "en"), ("ko", "whitespace", "ko", "ko"),
        ("fi", "korean", "fi", "en"),  # what the model states counts
        (None, "korean", "ko", "ko"), ("ko-KR", "korean", "ko", "ko"),
    ],
)  # fmt: skip
def test_a_model_gets_the_sentences_of_its_language(stated, tokenizer, language, pack):
    model = toy_model(tokenizer=TokenizerConfig(name=tokenizer))
    model.training_metadata["language"] = stated
    assert (language_of(model), pack_name(model)) == (language, f"packs/senses.{pack}.json")
